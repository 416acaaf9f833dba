package notify

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// post makes one attempt to say p.
func (f Forge) post(ctx context.Context, p ring.Post) outcome {
	d, err := driverOf(f.Kind)
	if err != nil {
		return outcome{permanent: true, says: err.Error()}
	}
	if !isSHA(p.SHA) {
		return outcome{permanent: true, says: "cannot post: not the id of a commit"}
	}
	p.Description = describe(p.Description)
	path, body := d.status(f, p)
	if _, err := f.call(ctx, http.MethodPost, path, body, nil); err != nil {
		return asOutcome(err)
	}
	return outcome{done: true}
}

func isSHA(s ring.SHA) bool {
	if len(s) != 40 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
