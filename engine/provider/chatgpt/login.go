package chatgpt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Login is a login in a browser that a person finishes by pasting an address.
type Login struct {
	URL      string // for the browser
	Redirect string // beginning of the address to paste
	server   *Server
	state    string // ties the pasted address to this login
	verifier string // proves that the code was asked for here; without it, the code is worthless
}

// Begin starts a login. It sends nothing.
func (s *Server) Begin() *Login {
	l := &Login{Redirect: redirect, server: s, state: oauth2.GenerateVerifier(), verifier: oauth2.GenerateVerifier()}
	l.URL = s.flow(redirect).AuthCodeURL(l.state, oauth2.S256ChallengeOption(l.verifier),
		oauth2.SetAuthURLParam("id_token_add_organizations", "true"), oauth2.SetAuthURLParam("codex_cli_simplified_flow", "true"),
		oauth2.SetAuthURLParam("originator", "lashd"))
	return l
}

// Finish gets the tokens for the address that the browser opened after the login.
func (l *Login) Finish(ctx context.Context, address string) (Tokens, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || !strings.HasPrefix(u.String(), redirect) {
		return Tokens{}, fmt.Errorf("the pasted address does not start with %s; copy the address that the browser shows after the login", redirect)
	}
	q := u.Query()
	switch why := q.Get("error"); {
	case word().MatchString(why):
		return Tokens{}, fmt.Errorf("the login failed: %s", why)
	case why != "":
		return Tokens{}, errors.New("the login failed")
	case q.Get("state") != l.state:
		return Tokens{}, errors.New("the pasted address belongs to another login; open the newest link and paste the address that follows it")
	case q.Get("code") == "":
		return Tokens{}, errors.New("the pasted address has no code; copy all of it")
	}
	return l.server.exchange(ctx, redirect, q.Get("code"), l.verifier)
}

// Device is a login for which a person enters a code on a web page, on any device.
type Device struct {
	URL, Code string
	server    *Server
	id        string
	interval  time.Duration // between two questions whether the code was entered
}

// deviceLimit is how long a device code is valid.
const deviceLimit = 15 * time.Minute

// errWaiting means that the code was not entered yet.
var errWaiting = errors.New("the code was not entered in time; log in again")

// BeginDevice asks the server for a code. The account's security settings must allow such logins.
func (s *Server) BeginDevice(ctx context.Context) (*Device, error) {
	var answer struct {
		ID       string      `json:"device_auth_id"`
		Code     string      `json:"user_code"`
		Interval json.Number `json:"interval"` // seconds, as a text or a number
	}
	err := s.post(ctx, "/api/accounts/deviceauth/usercode", map[string]string{"client_id": clientID}, &answer)
	switch {
	case errors.Is(err, errWaiting):
		return nil, errors.New("the server allows no login with a code; log in without --device")
	case err != nil:
		return nil, fmt.Errorf("get a code from %s: %w", s.issuer, err)
	case answer.ID == "" || !printable(answer.Code):
		return nil, fmt.Errorf("get a code from %s: the answer has none", s.issuer)
	}
	seconds, err := answer.Interval.Int64()
	if err != nil || seconds < 0 || seconds > 60 {
		seconds = 5
	}
	return &Device{s.issuer + "/codex/device", answer.Code, s, answer.ID, time.Duration(seconds) * time.Second}, nil
}

// printable reports whether a code can be shown on a terminal.
func printable(code string) bool {
	return code != "" && len(code) < 40 && !strings.ContainsFunc(code, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// Wait waits until the person has entered the code, for 15 minutes at most.
func (d *Device) Wait(ctx context.Context) (Tokens, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, deviceLimit, errWaiting)
	defer cancel()
	for {
		var answer struct {
			Code     string `json:"authorization_code"`
			Verifier string `json:"code_verifier"`
		}
		err := d.server.post(ctx, "/api/accounts/deviceauth/token", map[string]string{"device_auth_id": d.id, "user_code": d.Code}, &answer)
		switch {
		case err == nil:
			return d.server.exchange(ctx, d.server.issuer+"/deviceauth/callback", answer.Code, answer.Verifier)
		case ctx.Err() != nil:
			return Tokens{}, context.Cause(ctx)
		case !errors.Is(err, errWaiting):
			return Tokens{}, fmt.Errorf("ask %s whether the code was entered: %w", d.server.issuer, err)
		}
		select {
		case <-time.After(d.interval):
		case <-ctx.Done():
			return Tokens{}, context.Cause(ctx)
		}
	}
}

// mostAnswer bounds an answer of the server, in bytes.
const mostAnswer = 1 << 20

// post sends JSON and decodes the answer. The statuses 403 and 404 are errWaiting. Errors do not quote the answer.
func (s *Server) post(ctx context.Context, path string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.issuer+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound:
		return errWaiting
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	if json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(answer) != nil {
		return errors.New("the answer is not the expected JSON")
	}
	return nil
}
