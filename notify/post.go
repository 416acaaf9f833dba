package notify

import (
	"context"

	"github.com/gitring/gitring/ring"
)

// post makes one attempt to say what a row holds. remote is what the forge calls
// it, whatever the outcome; "" is that nobody knows.
func (f Forge) post(ctx context.Context, r ring.OutboxRow) (remote string, o outcome) {
	d, err := driverOf(f.Kind)
	if err != nil {
		return "", outcome{permanent: true, says: err.Error()}
	}
	if !isSHA(r.Post.SHA) {
		return "", outcome{permanent: true, says: "cannot post: not the id of a commit"}
	}
	r.Post.Description = describe(r.Post.Description)
	if isPlan(r.Post.Context) {
		f.Branch = "" // the head of a pull request is not on it
	}
	say := d.say
	if _, deployment := r.Post.Environment(); deployment {
		dd, ok := d.(deployer)
		if !ok {
			return "", outcome{permanent: true, says: f.Kind + " keeps no list of deployments; see status.deployments"}
		}
		f.doing, say = "write deployments", dd.deploy
	}
	remote, err = say(ctx, f, r)
	if err != nil {
		return remote, asOutcome(err)
	}
	return remote, outcome{done: true}
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
