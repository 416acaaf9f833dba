package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/screen"
)

func TestNewerTagsFitATerminal(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	images := []api.ImageNow{
		{App: "media", Service: "home-assistant", Image: "ghcr.io/home-assistant/home-assistant:2024.12.1", Pinned: digest, Now: digest, Tags: []string{"2025.2.1", "2025.1.0", "2024.12.5", "2024.12.4"}},
		{App: "web", Service: "web", Image: "nginx:1.27.1", Pinned: digest, Now: digest, Newer: true, Tags: []string{"2.0.0", "1.29.0", "1.28.3", "1.27.5", "1.27.4"}},
		{App: "web", Service: "db", Image: "postgres:16.4", Pinned: digest, Now: digest, TagsReason: "cannot list the tags of postgres: registry docker.io limits requests (429); docker login on the host may lift the limit"},
		{App: "web", Service: "cache", Image: "redis:alpine", Pinned: digest, Now: digest},
	}
	s := screen.New(false, 80)
	showTags(s, images, false)
	for line := range strings.SplitSeq(strings.TrimRight(s.String(), "\n"), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, " ")), 80, line)
	}
	require.Contains(t, s.String(), "2.0.0, 1.29.0, 1.27.5", "the newest of each kind")
	require.NotContains(t, s.String(), "1.28.3")
	require.Contains(t, s.String(), "429")

	fixed := []api.ImageNow{{App: "web", Service: "web", Image: "127.0.0.1:5000/acme/app:1.27.1@" + digest, Pinned: digest, Now: digest, Reason: "the commit names its digest"}}
	s = screen.New(false, 80)
	showImages(s, fixed, false)
	require.Regexp(t, `(?m)^web/web +no +127\.0\.0\.1:5000/acme/app:1\.27\.1 +sha256:a+ +same$`, s.String(), "a digest is told once, in its column")
	s = screen.New(false, 0)
	showImages(s, fixed, true)
	require.Contains(t, s.String(), fixed[0].Image)
	require.Equal(t, "app@"+digest, named("app@"+digest, false), "there is nothing else to go by")
	s = screen.New(false, 0)
	showTags(s, images, true)
	require.Contains(t, s.String(), "2.0.0, 1.29.0, 1.28.3, 1.27.5, 1.27.4")
}
