package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/gitring/gitring/ring"
)

// keep says that everything of p that was there before is still there. What is
// gone is brought back, or begun anew, by a person: never by us, in silence.
func (d *Docker) keep(ctx context.Context, e engine, a ring.Action, p payload) error {
	for _, name := range p.kept() {
		if !slices.Contains(a.Kept, name) {
			continue
		}
		there, err := isThere(ctx, e, name)
		if err != nil {
			return fault("cannot look after "+name, ring.CauseFiles, err)
		}
		if !there {
			return refused(a, ring.CauseFiles, ring.Conflict, name+" was there and is gone", byHand(name))
		}
	}
	return nil
}

func isThere(ctx context.Context, e engine, name string) (bool, error) {
	if volume, ok := strings.CutPrefix(name, "volume "); ok {
		_, err := e.VolumeInspect(ctx, volume)
		if cerrdefs.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	_, err := os.Lstat(strings.TrimPrefix(name, "data "))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func byHand(name string) string {
	if volume, ok := strings.CutPrefix(name, "volume "); ok {
		return fmt.Sprintf("bring it back, or make an empty one by hand: docker volume create %s", volume)
	}
	return fmt.Sprintf("bring it back, or make an empty one by hand: mkdir -p %s", strings.TrimPrefix(name, "data "))
}
