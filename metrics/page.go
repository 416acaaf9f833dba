package metrics

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// ContentType is what a page is served as: version 0.0.4 of Prometheus' text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// sample is one series of a gauge or a counter.
type sample struct {
	labels []string // values, in the order of Family.Labels
	value  float64
}

// spread is one series of a histogram. Counts are of each bucket by itself; the last is of
// what is above all bounds.
type spread struct {
	labels []string
	counts []uint64
	sum    float64
}

// page is everything that one scrape says, by the name of the family.
type page struct {
	samples map[string][]sample
	spreads map[string][]spread
}

func newPage() page {
	return page{samples: map[string][]sample{}, spreads: map[string][]spread{}}
}

func (p page) add(name string, value float64, labels ...string) {
	p.samples[name] = append(p.samples[name], sample{labels, value})
}

// when adds 1 or 0.
func (p page) when(name string, yes bool, labels ...string) {
	value := 0.0
	if yes {
		value = 1
	}
	p.add(name, value, labels...)
}

// text is the page as Prometheus reads it. Families without a series are left out; series
// are sorted, so that equal values give equal bytes.
func (p page) text() string {
	var b strings.Builder
	p.onto(&b, Families)
	return b.String()
}

// onto writes the series of families.
func (p page) onto(b *strings.Builder, families []Family) {
	for i := range families {
		f := &families[i]
		samples, spreads := p.samples[f.Name], p.spreads[f.Name]
		if len(samples)+len(spreads) == 0 {
			continue
		}
		b.WriteString("# HELP " + f.Name + " " + helpText.Replace(f.Help) + "\n# TYPE " + f.Name + " " + f.Kind + "\n")
		slices.SortFunc(samples, func(x, y sample) int { return slices.Compare(x.labels, y.labels) })
		for _, s := range samples {
			writeLine(b, f.Name, f.Labels, s.labels, number(s.value))
		}
		slices.SortFunc(spreads, func(x, y spread) int { return slices.Compare(x.labels, y.labels) })
		for _, s := range spreads {
			writeSpread(b, f, s)
		}
	}
}

// writeSpread writes buckets as Prometheus wants them: each with all that is below it.
func writeSpread(b *strings.Builder, f *Family, s spread) {
	names := append(slices.Clip(f.Labels), "le")
	var below uint64
	for i, n := range s.counts {
		below += n
		bound := math.Inf(1)
		if i < len(f.Buckets) {
			bound = f.Buckets[i]
		}
		writeLine(b, f.Name+"_bucket", names, append(slices.Clip(s.labels), number(bound)), strconv.FormatUint(below, 10))
	}
	writeLine(b, f.Name+"_sum", f.Labels, s.labels, number(s.sum))
	writeLine(b, f.Name+"_count", f.Labels, s.labels, strconv.FormatUint(below, 10))
}

func writeLine(b *strings.Builder, name string, labels, values []string, value string) {
	b.WriteString(name)
	for i, l := range labels {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		b.WriteByte(before)
		b.WriteString(l + `="` + labelText.Replace(strings.ToValidUTF8(values[i], "\uFFFD")) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + value + "\n")
}

var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// number is a value in Go's shortest form, which Prometheus reads: 1, 0.25, 1.7e+09, +Inf.
func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
