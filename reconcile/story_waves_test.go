package reconcile

import (
	"maps"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// wavesOf reads "canary:10m,edge-1+edge-2": the waves before this host.
func wavesOf(text string) (out []ring.Wave, err error) {
	for part := range strings.SplitSeq(text, ",") {
		hosts, soak, soaks := strings.Cut(part, ":")
		w := ring.Wave{Hosts: strings.Split(hosts, "+")}
		if soaks {
			if w.Soak, err = time.ParseDuration(soak); err != nil {
				return nil, err
			}
		}
		out = append(out, w)
	}
	return out, nil
}

// faultOfForge is "canary says failure [of c2] [why]", "canary says nothing", "the forge is
// away", "the forge is back", or "c3 is ahead" of what is trusted here.
func (s *story) faultOfForge(what string) bool {
	switch what {
	case "the forge is away":
		s.said, s.words = s.words, nil
		return true
	case "the forge is back":
		s.words = s.said
		return true
	}
	if name, ok := strings.CutSuffix(what, " is ahead"); ok {
		s.src.Ahead = shaOf(name)
		s.mem.wake = s.now
		return true
	}
	host, word, ok := strings.Cut(what, " says ")
	if !ok {
		return false
	}
	state, why, _ := strings.Cut(word, " ")
	at := ring.WordAt{Source: s.src.Name, Commit: shaOf(s.latest), Host: host}
	if of, rest, named := strings.Cut(why, " "); of == "of" && named {
		of, why, _ = strings.Cut(rest, " ")
		at.Commit = shaOf(of)
	}
	s.words = maps.Clone(s.words) // the daemon may have those of before in its hands
	if put(&s.words, at, ring.Word{State: state, Says: strings.TrimPrefix(why, `"`)}); state == "nothing" {
		delete(s.words, at)
	}
	s.mem.wake = s.now // the reader pokes
	return true
}
