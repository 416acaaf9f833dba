package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAVolumeThatNobodyOwnsIsToldForAsLongAsItIsUsed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		labels map[string]string
		here   bool
		want   []string
	}{
		{name: "not there yet: it will be made"},
		{name: "no labels", here: true, want: []string{"volume shop_pg was here before, made by neither gitring nor Compose; the app uses it with what is in it"}},
		{name: "labels of somebody else's", here: true, labels: map[string]string{"mine": "yes"}, want: []string{"volume shop_pg was here before, made by neither gitring nor Compose; the app uses it with what is in it"}},
		{name: "Compose made it", here: true, labels: map[string]string{"com.docker.compose.project": "shop"}},
		{name: "gitring made it", here: true, labels: map[string]string{"gitring.app": "shop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(Options{Host: "edge-1", DataRoot: t.TempDir()})
			if tt.here {
				f.AddVolume("shop_pg", tt.labels)
			}
			notes, err := f.Loose(t.Context(), shop())
			require.NoError(t, err)
			require.Equal(t, tt.want, notes)
		})
	}
}

func TestAnAppWithoutVolumesAsksNothingOfTheEngine(t *testing.T) {
	f := newFake(Options{Host: "edge-1", DataRoot: t.TempDir()})
	notes, err := f.Loose(t.Context(), &ring.App{Name: "shop"})
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Zero(t, f.Ops()["VolumeList"])
}
