package main

import (
	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// noSuch is the error for an app or service that this host does not have.
func noSuch(st *ring.Status, target string) error {
	says, hint := api.Missing(st, target)
	return &exit.Failure{Code: exit.NotFound, Says: says, Hint: hint}
}
