package gitsync

import (
	"context"

	"github.com/gitring/gitring/ring"
)

// MergeTree is Aids.Merge for a repository on this machine: the tree of the
// conflict-free merge of two commits whose objects lie in the folders given.
func MergeTree(ctx context.Context, ours, theirs ring.SHA, objects ...string) (ring.SHA, error) {
	return mergeTree(ctx, ours, theirs, objects...)
}
