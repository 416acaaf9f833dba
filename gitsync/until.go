package gitsync

import (
	"context"
	"fmt"

	"github.com/gitring/gitring/ring"
)

// Until is o for as long as ctx lasts. A verification reads an object with each
// step, so one of a long range ends at the next of its commits when nobody waits
// for it any more; whoever verified so asks ctx before believing the answer.
func Until(ctx context.Context, o Objects) Objects { return objectsUntil{ctx.Err, o} }

type objectsUntil struct {
	over func() error
	Objects
}

// Raw is o's, or why there is no time left.
func (u objectsUntil) Raw(sha ring.SHA) (string, []byte, error) {
	if err := u.over(); err != nil {
		return "", nil, fmt.Errorf("cannot go on: %w", err)
	}
	return u.Objects.Raw(sha)
}
