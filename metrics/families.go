package metrics

import "slices"

// Kinds of metrics.
const (
	Gauge     = "gauge"
	Counter   = "counter"
	Histogram = "histogram"
)

// Family is one metric: all series of a name.
type Family struct {
	Name, Kind, Help string
	// Labels are those of every series, in the order in which values are given.
	Labels []string
	// Buckets are the upper bounds of a histogram, in seconds, rising; +Inf is not among them.
	Buckets []float64
}

// Names of the metrics that others count.
const (
	Fetches        = "gitring_fetches_total"
	EngineRequests = "gitring_engine_requests_total"
	Webhooks       = "gitring_webhooks_total"
	APIRequests    = "gitring_api_requests_total"
	LookTook       = "gitring_look_duration_seconds"
	DecideTook     = "gitring_decide_duration_seconds"
)

// Results of a fetch.
const (
	FetchOK     = "ok"
	FetchFailed = "failed"
)

var (
	ofApp     = []string{"source", "app"}
	ofService = []string{"source", "app", "service"}
	ofSet     = []string{"source", "app", "service", "set"}
	ofKind    = []string{"source", "app", "service", "kind"}

	// A rollout takes from a second to an hour; a look from a millisecond to a minute.
	long  = []float64{1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}
	short = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60}
)

// Families are all metrics, in the order of a page.
var Families = []Family{
	{Name: "gitring_build_info", Kind: Gauge, Help: "Always 1: which gitring serves, on which host.", Labels: []string{"version", "host"}},
	{Name: "gitring_engine_up", Kind: Gauge, Help: "Whether the engine answered the last look. Absent before the first one."},
	{Name: "gitring_store_up", Kind: Gauge, Help: "Whether the last decision could be written down. Absent before the first look."},
	{Name: "gitring_config_rejected", Kind: Gauge, Help: "Whether the configuration on disk could not be read anew, so that the one before is in force."},

	{Name: "gitring_source_sync", Kind: Gauge, Help: "The sync of a source: 1 for the state that it is in, 0 for every other.", Labels: []string{"source", "sync"}},
	{Name: "gitring_source_refused", Kind: Gauge, Help: "Whether the newest commit of a source is refused.", Labels: []string{"source"}},
	{Name: "gitring_source_last_checked_timestamp_seconds", Kind: Gauge, Help: "When the remote of a source last answered. Absent before it first did.", Labels: []string{"source"}},
	{Name: "gitring_source_tip_timestamp_seconds", Kind: Gauge, Help: "The time that the commit in force claims to be made at. Absent where there is none.", Labels: []string{"source"}},
	{Name: "gitring_source_condition", Kind: Gauge, Help: "Whether a condition holds of a source.", Labels: []string{"source", "condition"}},
	{Name: "gitring_key_expiry_timestamp_seconds", Kind: Gauge, Help: "When the first key that a source trusts expires. Absent where none does.", Labels: []string{"source"}},

	{Name: "gitring_app_health", Kind: Gauge, Help: "The health of an app: 1 for the state that it is in, 0 for every other.", Labels: []string{"source", "app", "health"}},
	{Name: "gitring_app_refused", Kind: Gauge, Help: "Whether what the newest commit asks of an app is refused.", Labels: ofApp},
	{Name: "gitring_service_phase", Kind: Gauge, Help: "The phase of a service: 1 for the one that it is in, 0 for every other.", Labels: []string{"source", "app", "service", "phase"}},
	{Name: "gitring_service_instances_wanted", Kind: Gauge, Help: "How many instances of a service should run.", Labels: ofKind},
	{Name: "gitring_service_instances_ready", Kind: Gauge, Help: "How many instances of a service are ready, of any version.", Labels: ofKind},
	{Name: "gitring_service_instances_updated", Kind: Gauge, Help: "How many instances of a service are of the wanted version.", Labels: ofKind},
	{Name: "gitring_service_condition", Kind: Gauge, Help: "Whether a condition holds of a service.", Labels: []string{"source", "app", "service", "condition"}},

	{Name: "gitring_front_up", Kind: Gauge, Help: "Whether the front of a service answered within the last 3 seconds.", Labels: ofService},
	{Name: "gitring_front_connections", Kind: Gauge, Help: "Connections that a front has open. Absent where it does not answer.", Labels: ofService},
	{Name: "gitring_front_queued", Kind: Gauge, Help: "Requests that wait in a front for an instance. Absent where it does not answer.", Labels: ofService},
	{Name: "gitring_front_full", Kind: Gauge, Help: "Whether a front has no connection or descriptor left. Absent where it does not answer.", Labels: ofService},
	{Name: "gitring_front_in_flight", Kind: Gauge, Help: "Requests that the instances of a service are answering. Absent where the front does not answer.", Labels: ofService},

	{Name: "gitring_overrides", Kind: Gauge, Help: "How many acts of persons stand.", Labels: []string{"kind"}},
	{Name: "gitring_override_oldest_timestamp_seconds", Kind: Gauge, Help: "When the oldest act of a kind that stands began. Absent where none stands.", Labels: []string{"kind"}},
	{Name: "gitring_outbox_pending", Kind: Gauge, Help: "Messages that have not arrived, by the source or receiver that is to be told.", Labels: []string{"receiver"}},
	{Name: "gitring_outbox_oldest_timestamp_seconds", Kind: Gauge, Help: "Since when the oldest message waits. Absent where none does.", Labels: []string{"receiver"}},
	{Name: "gitring_job_last_success_timestamp_seconds", Kind: Gauge, Help: "When a job last succeeded. Absent where no run of it that succeeded is kept.", Labels: ofService},
	{Name: "gitring_job_late", Kind: Gauge, Help: "Whether a run of a cron job was due for more than 5 minutes and has not begun.", Labels: ofService},

	{Name: "gitring_events_total", Kind: Counter, Help: "Lines of the journal.", Labels: []string{"kind"}},
	{Name: Fetches, Kind: Counter, Help: "Looks at the remote of a source: ok, or failed.", Labels: []string{"source", "result"}},
	{Name: "gitring_verdicts_total", Kind: Counter, Help: "Verdicts on versions: good, or failed with the code of the reason.", Labels: []string{"result", "code"}},
	{Name: "gitring_rollouts_total", Kind: Counter, Help: "Rollouts by how they ended.", Labels: []string{"result"}},
	{Name: "gitring_crashes_total", Kind: Counter, Help: "Crashes of instances.", Labels: ofService},
	{Name: EngineRequests, Kind: Counter, Help: "Requests to the engine by method and path; code is the status, or error.", Labels: []string{"call", "code"}},
	{Name: Webhooks, Kind: Counter, Help: "Webhooks by what was made of them.", Labels: []string{"source", "result"}},
	{Name: APIRequests, Kind: Counter, Help: "Requests to the API.", Labels: []string{"route", "code"}},
	{Name: frontRequests, Kind: Counter, Help: "HTTP requests, tcp connections and udp flows that a front gave to instances of a set: stable or canary.", Labels: ofSet},
	{Name: frontAnswers, Kind: Counter, Help: "Answers to HTTP requests by class: 1xx to 5xx, or none where the connection ended before one.", Labels: append(slices.Clip(ofSet), "class")},
	{Name: frontDials, Kind: Counter, Help: "Connections to an instance that could not be opened.", Labels: ofSet},
	{Name: frontRetries, Kind: Counter, Help: "Requests that were given to an instance once more, because nothing of them had been sent or they were safe.", Labels: ofSet},
	{Name: frontBytes, Kind: Counter, Help: "Bytes that a front carried to its instances (in) and from them (out), without the heads of HTTP.", Labels: append(slices.Clip(ofSet), "direction")},

	{Name: "gitring_push_to_ready_seconds", Kind: Histogram, Help: "From a commit's acceptance to the end of each rollout of it that completed.", Labels: []string{"source"}, Buckets: long},
	{Name: "gitring_rollout_duration_seconds", Kind: Histogram, Help: "From the begin of a rollout to its end.", Labels: []string{"result"}, Buckets: long},
	{Name: frontTook, Kind: Histogram, Help: "From a request to the head of its answer, as a front counts.", Labels: ofSet, Buckets: headBounds},
	{Name: LookTook, Kind: Histogram, Help: "How long one observation of the engine took.", Buckets: short},
	{Name: DecideTook, Kind: Histogram, Help: "How long one decision took.", Buckets: short},
}

func family(name string) *Family {
	for _, all := range [][]Family{Families, HubFamilies} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}
