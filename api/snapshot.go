package api

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// same gives an answer to a GET its ETag, that of its bytes where it has none of its own,
// and reports whether the one who asks has it already: then 304 is the answer.
func same(a *answerWriter, body []byte) bool {
	h := a.Header()
	if h.Get("ETag") == "" {
		h.Set("ETag", tagOf(body))
	}
	tag := strings.TrimPrefix(h.Get("ETag"), "W/")
	for known := range strings.SplitSeq(a.r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(known), "W/") == tag {
			h.Del("Content-Type")
			a.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// ReportTag is the same for two statuses of which the later one has no news. When a remote was asked
// last is none: it is asked all day long.
func ReportTag(st *ring.Status) string {
	plain := *st
	plain.Sources = append([]ring.SourceStatus{}, st.Sources...)
	for i := range plain.Sources {
		plain.Sources[i].Checked = time.Time{}
	}
	return statusTag(&plain)
}

// StatusTag is the same for two statuses that say the same, whenever they were asked for.
func StatusTag(st *ring.Status) string { return statusTag(st) }

// statusTag is that of a status without the times that change while nothing does. It is
// weak: two answers with it need not be of the same bytes.
func statusTag(st *ring.Status) string {
	plain := *st
	plain.At = time.Time{}
	plain.Sources = append([]ring.SourceStatus{}, st.Sources...)
	for i := range plain.Sources {
		plain.Sources[i].Checking = false
	}
	return "W/" + tagOf(face(plain))
}
