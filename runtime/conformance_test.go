package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/enginetest"
)

// The one suite: what the engine in memory does, the real one does.
func TestFakeConforms(t *testing.T) { conformance(t, fakeRig) }

func TestEngineConforms(t *testing.T) {
	engineOrSkip(t)
	conformance(t, realRig)
}

// conformance runs the stories of every engine, and those that look at what Docker alone
// is sent.
func conformance(t *testing.T, start func(*testing.T) *rig) {
	enginetest.Conforms(t, func(t *testing.T) *enginetest.Rig { return start(t).Rig }, enginetest.HostStories(), enginetest.InstanceStories())
	for _, s := range ownStories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			defer enginetest.FailOnPanic(t)
			s.story(t, start(t))
		})
	}
}

// An ownStory looks at what Docker is sent.
type ownStory struct {
	name  string
	story func(*testing.T, *rig)
}

func ownStories() []ownStory {
	return []ownStory{
		{"every field of a spec survives", survives},
		{"hooks run after each start and before each stop of ours", hooksRun},
		{"a failing post_start hook stops the instance again", postStartFails},
		{"a failing pre_stop hook is told and the stop goes on", preStopFails},
		{"what an image's label calls hooks is not run", foreignHooks},
		{"files are swapped in place and written again before each start", reloadedInPlace},
		{"a reload that fails leaves the old files", reloadFails},
		{"binds are made and labelled and propagated as asked", binds},
		{"what the engine's API cannot do is told", told},
		{"what is not allowed is not made", notAllowed},
		{"sealed values are opened for the engine alone", sealedValues},
		{"a hook that tells a file tells no value of it", hooksThatTellFiles},
	}
}

func TestEachOwnStoryHasANameThatCanBeAFolder(t *testing.T) {
	names := map[string]bool{}
	for _, s := range ownStories() {
		require.False(t, strings.ContainsAny(s.name, ",:/"), s.name)
		require.False(t, names[s.name], s.name)
		names[s.name] = true
	}
}
