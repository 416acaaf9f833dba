package pages

import (
	"github.com/gitring/gitring/api"
)

// routes are all pages that show what the daemon answers.
var routes = []route{
	{pattern: "GET /{$}", scope: api.ScopeRead, nav: "/", kept: true, page: nowPage},
}
