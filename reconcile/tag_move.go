package reconcile

import "github.com/gitring/gitring/ring"

// isMove reports whether one version of a service differs from another by what its tag means,
// and no commit asked for that.
func isMove(old, s *ring.Service) bool {
	return s.Pin.Moved && old.Pin.Digest() != s.Pin.Digest() && old.Written == s.Written
}

// movedSays is why a version is there that no commit asked for.
func movedSays(s *ring.Service) string { return say("tag %s moved", s.Spec.Image) }
