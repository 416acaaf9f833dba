package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The counters of a hub.
const (
	HubReports = "gitring_hub_reports_total"
	HubLines   = "gitring_hub_lines_total"
	HubGaps    = "gitring_hub_gaps_total"
)

// mostSeries bounds what one host may add to a page: a status of 1,000 services has half as many.
const mostSeries = 50_000

// HubFamilies are the metrics of a hub about hosts. Besides them its page has the gauges of each host
// that the status tells, with the label host.
var HubFamilies = []Family{
	{Name: "gitring_hub_host_silent", Kind: Gauge, Help: "Whether a host has not reported for 3 minutes. Its other series are gone then.", Labels: []string{"host"}},
	{Name: "gitring_hub_host_last_report_timestamp_seconds", Kind: Gauge, Help: "When a host reported last, by the clock of the hub.", Labels: []string{"host"}},
	{Name: "gitring_hub_host_clock_ahead_seconds", Kind: Gauge, Help: "By how much the clock of a host is ahead of that of the hub; negative is behind.", Labels: []string{"host"}},
	{Name: "gitring_hub_host_series_left_out", Kind: Gauge, Help: "How many series of a host are not here, because its status has too many of them.", Labels: []string{"host"}},
	{Name: HubReports, Kind: Counter, Help: "Reports of a host, by what came of them: taken; full where there was no room for its journal; refused; failed.", Labels: []string{"host", "result"}},
	{Name: HubLines, Kind: Counter, Help: "Lines of a host's journal that were kept.", Labels: []string{"host"}},
	{Name: HubGaps, Kind: Counter, Help: "How often lines of a host's journal were missing: trimmed there before they were told, or of a database that was replaced.", Labels: []string{"host", "reason"}},
	{Name: APIRequests, Kind: Counter, Help: "Requests to the API.", Labels: []string{"route", "code"}},
}

// HubHost is what a hub knows of a host.
type HubHost struct {
	// Host is the value of the label: no two have the same.
	Host   string
	Silent bool
	Seen   time.Time
	Ahead  time.Duration
	// Status gives what the host said last, and nil where that counts no more. Only one is read at a
	// time: a host may say much.
	Status func() *ring.Status
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
		st := h.Status()
		if st == nil {
			continue
		}
		p := newPage()
		s := Scrape{Now: now, Status: *st}
		s.host(p)
		for j := range s.Status.Sources {
			s.source(p, &s.Status.Sources[j])
		}
		s.acts(p)
		count := 0
		for _, samples := range p.samples {
			count += len(samples)
		}
		if count > mostSeries {
			own.add("gitring_hub_host_series_left_out", float64(count), h.Host)
			continue
		}
		own.add("gitring_hub_host_series_left_out", 0, h.Host)
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
