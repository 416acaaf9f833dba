package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// tellEvery is the least time between two words about one pull.
const tellEvery = 500 * time.Millisecond

// line is one of the engine's about a pull.
type line struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error  string `json:"error"`
	Detail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

func (l *line) err() error {
	switch {
	case l.Detail.Message != "":
		return errors.New(l.Detail.Message)
	case l.Error != "":
		return errors.New(l.Error)
	}
	return nil
}

// pulled reads the engine's progress to its end. Some errors come only in it.
// tell, if set, is called with how far it is after each line.
func pulled(body io.ReadCloser, tell func(*pulling)) error {
	defer func() { _ = body.Close() }()
	dec := json.NewDecoder(body)
	p := pulling{layers: map[string]*layerPull{}}
	for {
		var l line
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = l.err()
		}
		if err != nil {
			return err
		}
		if p.take(&l); tell != nil && len(p.layers) > 0 {
			tell(&p)
		}
	}
}

// noPlatform reports whether an index has nothing for what was asked.
func noPlatform(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no matching manifest for") || strings.Contains(text, "does not match the specified platform")
}

// telling passes on how far a pull is, now and then.
func (d *Docker) telling(target string) func(*pulling) {
	if d.opts.Progress == nil {
		return nil
	}
	var last time.Time
	return func(p *pulling) {
		now := d.opts.Now()
		if now.Sub(last) < tellEvery {
			return
		}
		last = now
		d.opts.Progress(target, p.String())
	}
}

// pulling is how far a pull is, by layer.
type pulling struct{ layers map[string]*layerPull }

type layerPull struct {
	have, total int64 // bytes over the network; total is 0 until it began
	done        bool  // unpacked, or here before
}

// take learns from one line. What is no layer's has another status.
func (p *pulling) take(l *line) {
	if l.ID == "" {
		return
	}
	known := p.layers[l.ID]
	if known == nil {
		known = &layerPull{}
	}
	switch l.Status {
	case "Pulling fs layer", "Waiting":
	case "Downloading":
		known.have = l.Progress.Current
		known.total = max(known.total, l.Progress.Total)
	case "Verifying Checksum", "Download complete", "Extracting":
		known.have = known.total
	case "Pull complete", "Already exists":
		known.have, known.done = known.total, true
	default:
		return
	}
	p.layers[l.ID] = known
}

// String is such as "12.3MB of 80.1MB, 3 of 7 layers".
func (p *pulling) String() string {
	var have, total int64
	done := 0
	for _, l := range p.layers {
		have, total = have+l.have, total+l.total
		if l.done {
			done++
		}
	}
	says := fmt.Sprintf("%d of %d layers", done, len(p.layers))
	if total == 0 {
		return says
	}
	return fmt.Sprintf("%s of %s, %s", bytesOf(have), bytesOf(total), says)
}

// bytesOf is a size as "docker pull" tells it, in powers of ten.
func bytesOf(n int64) string { return units.HumanSizeWithPrecision(float64(n), 3) }
