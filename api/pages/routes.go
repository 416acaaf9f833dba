package pages

import (
	"time"

	"github.com/gitring/gitring/api"
)

// routes are all pages that show what the daemon answers.
var routes = []route{
	{pattern: "GET /{$}", scope: api.ScopeRead, nav: "/", stored: true, kept: true, page: nowPage},
	{pattern: "GET /app/{app}", scope: api.ScopeRead, nav: "/", stored: true, kept: true, page: appPage},
	{pattern: "GET /svc/{app}/{service}", scope: api.ScopeRead, nav: "/", stored: true, kept: true, fresh: keptFor, page: servicePage},
	{pattern: "GET /logs/{app}/{service}", scope: api.ScopeLogs, nav: "/", page: logsPage},
	{pattern: "GET /commit/{sha}", scope: api.ScopeRead, nav: "/history", stored: true, kept: true, page: commitPage},
	{pattern: "GET /plan", scope: api.ScopeRead, nav: "/plan", kept: true, fresh: time.Minute, page: planPage},
	{pattern: "GET /history", scope: api.ScopeRead, nav: "/history", stored: true, kept: true, fresh: time.Minute, page: historyPage},
	{pattern: "GET /jobs", scope: api.ScopeRead, nav: "/jobs", stored: true, kept: true, fresh: keptFor, page: jobsPage},
	{pattern: "GET /crashes", scope: api.ScopeRead, nav: "/crashes", stored: true, kept: true, fresh: keptFor, page: crashesPage},
	{pattern: "GET /trust", scope: api.ScopeRead, nav: "/trust", kept: true, fresh: keptFor, page: trustPage},
	{pattern: "GET /doctor", scope: api.ScopeRead, nav: "/doctor", page: doctorPage},
	{pattern: "GET /act/{app}", scope: api.ScopeOperate, nav: "/", page: actPage},
	{pattern: "POST /act/{app}", scope: api.ScopeOperate, nav: "/", page: actPage},
	{pattern: "GET /act/{app}/{service}", scope: api.ScopeOperate, nav: "/", page: actPage},
	{pattern: "POST /act/{app}/{service}", scope: api.ScopeOperate, nav: "/", page: actPage},
	{pattern: "GET /sync/{source}", scope: api.ScopeOperate, nav: "/", page: syncPage},
	{pattern: "POST /sync/{source}", scope: api.ScopeOperate, nav: "/", page: syncPage},
	{pattern: "GET /approve/{sha}", scope: api.ScopeApprove, nav: "/plan", page: approvePage},
	{pattern: "POST /approve/{sha}", scope: api.ScopeApprove, nav: "/plan", page: approvePage},
	{pattern: "/", scope: api.ScopeRead, stored: true, page: noPage},
}
