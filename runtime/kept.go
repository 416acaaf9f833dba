package runtime

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// keep refuses to make anew what an instance of the app had before: a volume or
// a data folder that is gone is not replaced by an empty one, which its program would
// take for a first start. Nothing of this is for ever: once a person has brought
// it back, or made an empty one, the same step goes through.
func (d *Docker) keep(ctx context.Context, e engine, a ring.Action, p payload) error {
	for _, rel := range p.Data {
		if err := keepFolder(a, p.DataRoot, rel); err != nil {
			return err
		}
	}
	for _, source := range p.Made {
		if slices.Contains(a.Kept, keptPath(source)) && d.missing(source) {
			return goneFolder(a, "folder "+source, source)
		}
	}
	return keepVolumes(ctx, e, a, p.Volumes)
}

// missing reports whether a path of the host is not there, as far as we can see it.
func (d *Docker) missing(source string) bool {
	d.mu.Lock()
	seen := !d.inside
	d.mu.Unlock()
	for _, dir := range d.opts.SamePaths {
		seen = seen || source == dir || strings.HasPrefix(source, strings.TrimSuffix(dir, "/")+"/")
	}
	if !seen || !filepath.IsAbs(source) {
		return false
	}
	there, err := glance(source)
	return err == nil && there == absent
}

func goneFolder(a ring.Action, what, source string) error {
	return gone(a, what+" was there and is gone", fmt.Sprintf("bring it back (is its disk mounted?); to begin empty: mkdir -p %s", source))
}

func keepFolder(a ring.Action, root, rel string) error {
	folder := filepath.Join(root, rel)
	there, err := glance(folder)
	if err != nil {
		return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot look into data folder %s: %w", folder, err)}
	}
	if there != absent {
		return nil
	}
	below, err := glance(root)
	if err != nil {
		return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot look into data root %s: %w", root, err)}
	}
	was := slices.Contains(a.Kept, keptData(folder))
	someWere := slices.ContainsFunc(a.Kept, func(name string) bool { return strings.HasPrefix(name, keptData(root)+"/") })
	switch {
	case below != filled && someWere:
		// Making the folder would put the data on the disk below the mount point.
		return gone(a, fmt.Sprintf("data root %s held data and is %s now", root, map[filling]string{absent: "gone", empty: "empty"}[below]),
			fmt.Sprintf("is its disk mounted? to begin empty: mkdir -p %s", folder))
	case was:
		return gone(a, fmt.Sprintf("data folder %s was there and is gone", folder),
			fmt.Sprintf("bring it back; to begin empty: mkdir -p %s", folder))
	}
	return nil
}

func keepVolumes(ctx context.Context, e engine, a ring.Action, volumes []wantedVolume) error {
	must := slices.DeleteFunc(slices.Clone(volumes), func(v wantedVolume) bool {
		return v.External || !slices.Contains(a.Kept, keptVolume(v.Name))
	})
	if len(must) == 0 {
		return nil
	}
	list, err := e.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return fault("cannot list volumes", "", err)
	}
	for _, v := range must {
		if slices.ContainsFunc(list.Volumes, func(x *volume.Volume) bool { return x.Name == v.Name }) {
			continue
		}
		return gone(a, fmt.Sprintf("volume %s was there and is gone", v.Name),
			"bring it back; to begin empty: docker volume create "+v.Name)
	}
	return nil
}

// gone is what the host lacks.
func gone(a ring.Action, says, hint string) *ring.EngineError {
	return ofHost(a, ring.CauseFiles, says, hint)
}

// ofHost is a refusal that is not the version's fault: another version would fare
// no better.
func ofHost(a ring.Action, cause, says, hint string) *ring.EngineError {
	err := refused(a, cause, ring.Conflict, says, hint)
	err.Permanent, err.Wait = false, askAgain
	return err
}

// faultOf is fault of a step that makes something run: a path of the host that is
// not there, or a port of it that somebody has, is no fault of the version that
// wants it.
func faultOf(a ring.Action, cannot, cause string, err error) *ring.EngineError {
	if e := portTaken(a, err); e != nil {
		return e
	}
	_, source, ok := strings.Cut(err.Error(), "bind source path does not exist: ")
	if !ok || a.Want == nil {
		return fault(cannot, cause, err)
	}
	source = strings.TrimSpace(source)
	return gone(a, fmt.Sprintf("path %s of the host is not there", source), fmt.Sprintf("is its disk mounted? to begin empty: mkdir -p %s", source))
}
