// Package once sends a request that must happen once. Copy this file into your project; it
// needs the standard library only.
//
// Make a key for each intended effect (per payment, per order) and store it with the order
// BEFORE the first call. Call Post with it; after a restart, call it again with the same key,
// body and headers. Delete the key only after an answer was returned, whatever its status.
// An *Unsettled error is not definite: keep the key, and never make another one for it.
//
//	answer, err := once.Post(url, http.Header{"Content-Type": {"application/json"}}, body, order.Key, time.Minute)
package once

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"
)

// Answer is definite, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Unsettled says that no definite answer came. Doubt: it may have happened.
type Unsettled struct {
	Doubt bool
	Last  *Answer // the last answer that came, or nil
}

func (u *Unsettled) Error() string {
	return fmt.Sprintf("no definite answer; may have happened: %t", u.Doubt)
}

// Each attempt has a connection of its own: on a kept one, net/http would send the request
// a second time by itself. A redirect is an answer, and is not followed.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Post sends the request until the answer is definite, with the same key, within the budget.
func Post(url string, header http.Header, body []byte, key string, budget time.Duration) (*Answer, error) {
	result, end := &Unsettled{}, time.Now().Add(budget)
	for backoff := 300 * time.Millisecond; ; backoff = min(2*backoff, 10*time.Second) {
		left := time.Until(end)
		if left <= 0 { // a sleep may last longer; and a time of 0 would be no bound
			return nil, result
		}
		answer, sent, err := attempt(url, header, body, key, left)
		if _, refused := err.(*http.ProtocolError); refused {
			return nil, err
		}
		then, doubt, wait := judge(answer, sent, result.Doubt)
		if then == "done" {
			return answer, nil
		}
		result.Doubt = doubt
		if answer != nil {
			result.Last = answer
		}
		if pause := time.Duration(rand.Int63n(int64(backoff))); wait < pause {
			wait = pause
		}
		if then == "stop" || time.Now().Add(wait).After(end) {
			return nil, result
		}
		time.Sleep(wait)
	}
}

func attempt(url string, header http.Header, body []byte, key string, left time.Duration) (*Answer, bool, error) {
	request, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return nil, false, &http.ProtocolError{ErrorString: err.Error()}
	}
	if header != nil {
		request.Header = header.Clone()
	}
	request.Header.Set("Idempotency-Key", strconv.Quote(key))
	sent := false // no byte leaves before there is a connection, with TLS
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}
	limited := *client
	limited.Timeout = min(left, 30*time.Second)
	response, err := limited.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		return nil, sent, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 16<<20+1))
	if err == nil && len(content) > 16<<20 {
		err = io.ErrShortBuffer
	}
	if err != nil {
		return nil, true, err // cut off, or too large: as good as lost
	}
	return &Answer{response.StatusCode, response.Header, content}, true, nil
}

// What to do (done, again, stop), whether it may have happened, and how long to wait. The
// cases are those of hapax's own clients.
func judge(a *Answer, sent, doubt bool) (string, bool, time.Duration) {
	if a == nil {
		return "again", doubt || sent, 0
	}
	said := read(a)
	wait, has := retryAfter(a.Header.Get("Retry-After"))
	refused := in(a.Status, 401, 403, 407, 408, 421, 425, 429) || a.Status == 503 && has
	maybe := doubt || (said.executed != "no" && (said.executed != "" || !refused))
	switch {
	case a.Status == 202 && a.Header.Get("Hapax-Operation") != "" && said.state == "in_progress":
		return "again", maybe, wait
	case a.Status < 400 || a.Header.Get("Idempotent-Replayed") == "true" || said.retry == "never":
		return "done", false, 0
	case said.retry == "after_fix" && !doubt && (said.executed == "no" || said.executed == "" && a.Status < 500):
		return "done", false, 0
	case said.retry == "after_fix":
		return "stop", maybe, 0
	case said.retry == "same_key" || in(a.Status, 408, 425, 429, 502, 503, 504),
		a.Status == 409 && (doubt || has || said.kind == "idempotency_error"):
		return "again", maybe, wait
	case in(a.Status, 401, 403, 407, 421) && doubt || a.Status >= 500:
		return "stop", maybe, 0
	}
	return "done", false, 0
}

type words struct{ retry, executed, state, kind string }

// The members of a problem document, or of an error in Stripe's shape. Other words are none.
func read(a *Answer) words {
	var found struct {
		Retry, Executed, State any
		Error                  any
	}
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if kind != "application/problem+json" && kind != "application/json" || json.Unmarshal(a.Body, &found) != nil {
		return words{}
	}
	w := words{retry: one(found.Retry, "same_key", "after_fix", "never"), executed: one(found.Executed, "no", "yes", "unknown")}
	if kind == "application/json" {
		e, _ := found.Error.(map[string]any)
		w = words{one(e["retry"], "same_key", "after_fix", "never"), one(e["executed"], "no", "yes", "unknown"),
			one(found.State, "in_progress"), one(e["type"], "idempotency_error")}
	}
	return w
}

func one(value any, known ...string) string {
	for _, word := range known {
		if value == word {
			return word
		}
	}
	return ""
}

func retryAfter(text string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(text)
	return time.Until(date), err == nil
}

func in(status int, list ...int) bool {
	for _, one := range list {
		if status == one {
			return true
		}
	}
	return false
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}
