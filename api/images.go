package api

import (
	"net/http"
	"slices"
	"strings"
)

func (s *Socket) outdated(w http.ResponseWriter, r *http.Request, p Peer) error {
	q := query{values: r.URL.Query()}
	asked := OutdatedQuery{App: q.text("app"), Tags: q.yes("tags")}
	if q.err != nil {
		return q.err
	}
	if asked.App != "" {
		if err := s.knows(r.Context(), p, asked.App, ""); err != nil {
			return err
		}
	}
	images, err := s.calls.Outdated(r.Context(), asked)
	if err != nil {
		return err
	}
	images = slices.DeleteFunc(images, func(i ImageNow) bool { return !p.apps.Has(i.App) })
	return writeJSON(w, listed(images))
}

func (s *Socket) refresh(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a RefreshRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.App == "" {
		return Usage("gitring status lists apps and services", "what shall be refreshed? an app is required")
	}
	if strings.TrimSpace(a.Reason) == "" {
		return Usage("say why with --reason", "a reason is required")
	}
	images, err := s.calls.Refresh(r.Context(), p, a)
	if err != nil {
		return err
	}
	s.log.Info("refreshed", "app", a.App, "service", a.Service, "actor", p.Actor(), "reason", a.Reason)
	return writeJSON(w, listed(images))
}

func (s *Socket) refreshSecrets(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a SecretRefreshRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.App == "" {
		return Usage("gitring status lists apps", "whose secrets shall be refreshed? an app is required")
	}
	all, err := s.calls.RefreshSecrets(r.Context(), p, a)
	if err != nil {
		return err
	}
	s.log.Info("asked providers of secrets", "app", a.App, "actor", p.Actor(), "reason", a.Reason)
	return writeJSON(w, all)
}

// listed is [] for none, so that programs always get a list.
func listed(images []ImageNow) []ImageNow {
	if images == nil {
		return []ImageNow{}
	}
	return images
}
