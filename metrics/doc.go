// Package metrics is what Prometheus reads: the text of one scrape, made of a status and of
// counts. Everything but Counts is a pure function, so each number can be traced to a value.
//
//	families  the metrics there are: names, kinds, labels, help
//	gauges    those that are computed from the status of the moment
//	carried   those that fronts count
//	journal   those that are counted from lines of the journal
//	counts    those that are counted as they happen
//	page      one scrape, from values to text
//	fleet     the page of a hub: of many hosts
//
// A label has only values that the configuration, a plan or a closed list bounds: never a
// commit, an instance, a signer or a URL.
package metrics
