package gitring_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests run the image of the stage prebuilt, which asks no registry; people are
// told to build the last one. They are the same image: each has the same files at the
// same places and begins in the same way, and both binaries are what make build makes.
func TestTheImageFromSourceIsTheOneThatIsTried(t *testing.T) {
	stages := stagesOf(t, read(t, "Dockerfile"))
	require.Len(t, stages, 3)
	prebuilt, build, last := stages[0], stages[1], stages[2]
	require.Equal(t, []string{"FROM scratch AS prebuilt"}, prebuilt[:1])
	require.Equal(t, []string{"FROM scratch"}, last[:1])
	require.Equal(t, withoutOrigin(prebuilt[1:]), withoutOrigin(last[1:]))

	// Compiled where the builder runs, for where the image will.
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	require.Equal(t, "FROM --platform=$BUILDPLATFORM golang:"+minor+"-bookworm AS build", build[0])
	makes := build[len(build)-1]
	require.Equal(t, "RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION=$VERSION OUT=/out/gitring", makes)
	require.Contains(t, last, "COPY --from=build /out/gitring /usr/bin/gitring")
	require.Contains(t, read(t, "scripts/image.sh"), `GOOS=linux GOARCH=$arch make -s build OUT="$context/bin/gitring"`)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// stagesOf are the instructions of each stage, without comments.
func stagesOf(t *testing.T, text string) (stages [][]string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "FROM "):
			stages = append(stages, []string{line})
		default:
			require.NotEmpty(t, stages, line)
			stages[len(stages)-1] = append(stages[len(stages)-1], line)
		}
	}
	return stages
}

// withoutOrigin are instructions, of a copy only to where.
func withoutOrigin(lines []string) (out []string) {
	for _, line := range lines {
		if words := strings.Fields(line); words[0] == "COPY" {
			line = "COPY to " + words[len(words)-1]
		}
		out = append(out, line)
	}
	return out
}
