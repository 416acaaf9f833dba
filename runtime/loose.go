package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// unlabelled reports whether an app's volume is here and has no label that says whose it is.
func unlabelled(app string, v volumeUse, here []*volume.Volume) bool {
	name := v.EngineName(app)
	i := slices.IndexFunc(here, func(x *volume.Volume) bool { return x.Name == name })
	return i >= 0 && v.External == "" && cmp.Or(here[i].Labels[labelApp], here[i].Labels[composeProject]) == ""
}

func looseSays(name string) string {
	return fmt.Sprintf("volume %s was here before, made by neither gitring nor Compose; the app uses it with what is in it", name)
}

// Loose are the notes of an app on volumes that nobody says whose they are, for people
// who ask what it would do or why it is as it is. An app without volumes costs no
// question.
func (d *Docker) Loose(ctx context.Context, app *ring.App) (notes []string, err error) {
	uses := mountedVolumes(app)
	if len(uses) == 0 {
		return nil, nil
	}
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.VolumeList(ctx, volume.ListOptions{})
	if err != nil {
		return nil, fault("cannot list volumes", "", err)
	}
	for _, v := range uses {
		if unlabelled(app.Name, v, list.Volumes) {
			notes = append(notes, looseSays(v.EngineName(app.Name)))
		}
	}
	return notes, nil
}
