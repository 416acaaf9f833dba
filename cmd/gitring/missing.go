package main

import (
	"github.com/gitring/gitring/ring"

	"github.com/gitring/gitring/api"
)

// noSuch is the error for an app or service that this host does not have.
func noSuch(st *ring.Status, target string) error {
	says, hint := api.Missing(st, target)
	return &failure{code: exitNotFound, says: says, hint: hint}
}
