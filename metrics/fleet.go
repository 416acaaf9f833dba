package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// HubFamilies are the metrics of a hub about hosts. Besides them its page has the gauges of each host
// that the status tells, with the label host.
var HubFamilies = []Family{
	{Name: "gitring_hub_host_silent", Kind: Gauge, Help: "Whether a host has not reported for 3 minutes. Its other series are gone then.", Labels: []string{"host"}},
	{Name: "gitring_hub_host_last_report_timestamp_seconds", Kind: Gauge, Help: "When a host reported last, by the clock of the hub.", Labels: []string{"host"}},
	{Name: "gitring_hub_host_clock_ahead_seconds", Kind: Gauge, Help: "By how much the clock of a host is ahead of that of the hub; negative is behind.", Labels: []string{"host"}},
	{Name: APIRequests, Kind: Counter, Help: "Requests to the API.", Labels: []string{"route", "code"}},
}

// HubHost is what a hub knows of a host.
type HubHost struct {
	// Host is the value of the label: no two have the same.
	Host   string
	Silent bool
	Seen   time.Time
	Ahead  time.Duration
	// Status is what the host said last; nil where that counts no more.
	Status *ring.Status
}

// HubText is the page of a hub.
func HubText(now time.Time, hosts []HubHost, counts *Counts) string {
	own := newPage()
	all := newPage()
	for i := range hosts {
		h := &hosts[i]
		own.when("gitring_hub_host_silent", h.Silent, h.Host)
		moment(own, "gitring_hub_host_last_report_timestamp_seconds", h.Seen, h.Host)
		own.add("gitring_hub_host_clock_ahead_seconds", h.Ahead.Seconds(), h.Host)
		if h.Status == nil {
			continue
		}
		p := newPage()
		s := Scrape{Now: now, Status: *h.Status}
		s.host(p)
		for j := range s.Status.Sources {
			s.source(p, &s.Status.Sources[j])
		}
		s.acts(p)
		for name, samples := range p.samples {
			for _, x := range samples {
				all.add(name, x.value, withHost(family(name), x.labels, h.Host)...)
			}
		}
	}
	counts.onto(own)
	families := make([]Family, len(Families))
	for i, f := range Families {
		families[i] = f
		if !slices.Contains(f.Labels, "host") {
			families[i].Labels = append([]string{"host"}, f.Labels...)
		}
	}
	var b strings.Builder
	own.onto(&b, HubFamilies)
	all.onto(&b, families)
	return b.String()
}

// withHost are the values of labels with that of the host, which comes first where the family has none.
func withHost(f *Family, labels []string, host string) []string {
	if i := slices.Index(f.Labels, "host"); i >= 0 {
		labels = slices.Clone(labels)
		labels[i] = host
		return labels
	}
	return append([]string{host}, labels...)
}
