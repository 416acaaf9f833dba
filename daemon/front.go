package daemon

import (
	"github.com/gitring/gitring/frontprogram"
	"github.com/gitring/gitring/runtime"
)

// frontBuild is the program of fronts that this release brings.
func frontBuild() runtime.FrontBuild {
	return runtime.FrontBuild{Sum: frontprogram.Sum(), Open: frontprogram.Bytes}
}
