package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// What shoutrrr does not do right is said by ourselves: its Telegram takes a
// network that failed for success, and its Teams knows only the connectors that
// Microsoft replaced by workflows.

// telegram is what a URL of shoutrrr's form says:
// telegram://<token>@telegram?chats=<chat>,<chat>
type telegram struct {
	token  string
	chats  []string
	silent bool
}

func parseTelegram(u *url.URL) (telegram, error) {
	secret, _ := u.User.Password()
	t := telegram{token: u.User.Username() + ":" + secret}
	q := u.Query()
	for _, chat := range strings.Split(q.Get("chats")+","+q.Get("channels"), ",") {
		if chat = strings.TrimSpace(chat); chat != "" {
			t.chats = append(t.chats, chat)
		}
	}
	id, key, _ := strings.Cut(t.token, ":")
	if id == "" || strings.Trim(id, "0123456789") != "" || len(key) < 30 || strings.ContainsAny(key, "/?#% ") {
		return telegram{}, errors.New("no token")
	}
	if len(t.chats) == 0 || len(t.chats) > 10 {
		return telegram{}, errors.New("no chat")
	}
	t.silent = strings.EqualFold(q.Get("notification"), "no")
	return t, nil
}

// sendTelegram is the Bot API's sendMessage (core.telegram.org/bots/api): plain
// text, no preview of links.
func sendTelegram(r *road, u *url.URL, text string) error {
	t, err := parseTelegram(u)
	if err != nil {
		return err
	}
	for _, chat := range t.chats {
		if !strings.HasPrefix(chat, "-") && !strings.HasPrefix(chat, "@") && strings.Trim(chat, "0123456789") != "" {
			chat = "@" + chat
		}
		var answer struct {
			OK bool `json:"ok"`
		}
		err := postJSON(r, "https://api.telegram.org/bot"+t.token+"/sendMessage", map[string]any{
			"chat_id": chat, "text": text, "disable_notification": t.silent, "link_preview_options": map[string]bool{"is_disabled": true},
		}, &answer)
		if err != nil {
			return err
		}
		if !answer.OK {
			return errors.New("not taken")
		}
	}
	return nil
}

// sendWorkflow posts an adaptive card to a webhook of Teams' Workflows:
// teams+https://<the webhook's URL>.
func sendWorkflow(r *road, u *url.URL, text string) error {
	at := *u
	at.Scheme = "https"
	var blocks []any
	for line := range strings.Lines(text) {
		blocks = append(blocks, map[string]any{"type": "TextBlock", "text": strings.TrimRight(line, "\n"), "wrap": true})
	}
	return postJSON(r, at.String(), map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": map[string]any{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": blocks,
		},
	}}}, nil)
}

// postJSON is one request; into is nil where the answer's body says nothing.
func postJSON(r *road, at string, in, into any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, at, bytes.NewReader(body)) //nolint:noctx // the client has a deadline, and the process
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := r.client(nil).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	if res.StatusCode >= 300 {
		return errors.New("not taken")
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(res.Body, mostReply)).Decode(into)
}
