package chatgpt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"lashd/engine/provider"
)

const (
	// clientID is the public id of the Codex CLI. OpenAI registers no other clients for ChatGPT accounts.
	clientID = "app_EMoamEEZ73f0CkXaXp7hrann"
	// redirect is the only address that is registered for that client. lashd does not listen there: the person copies the address.
	redirect = "http://localhost:1455/auth/callback"
	// answerLimit bounds a request to the server.
	answerLimit = 10 * time.Second
)

// Server logs people in. It is safe for concurrent use.
type Server struct {
	issuer string
	client *http.Client // follows no redirect: tokens go to one server only
}

// NewServer returns the server at an address, such as Issuer.
func NewServer(issuer string) *Server {
	return &Server{strings.TrimSuffix(issuer, "/"), &http.Client{
		Timeout:       answerLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// flow returns the settings of an OAuth login that ends at a redirect address.
func (s *Server) flow(redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: clientID, RedirectURL: redirect, Scopes: []string{"openid", "profile", "email", "offline_access"},
		Endpoint: oauth2.Endpoint{AuthURL: s.issuer + "/oauth/authorize", TokenURL: s.issuer + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams},
	}
}

// with returns a context in which oauth2 uses the server's client.
func (s *Server) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.client)
}

// exchange gets tokens for a code.
func (s *Server) exchange(ctx context.Context, redirect, code, verifier string) (Tokens, error) {
	token, err := s.flow(redirect).Exchange(s.with(ctx), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Tokens{}, fmt.Errorf("get a token from %s: %w", s.issuer, plain(err))
	}
	if token.RefreshToken == "" {
		return Tokens{}, fmt.Errorf("get a token from %s: the answer has no refresh token", s.issuer)
	}
	return tokensOf(token, Tokens{}), nil
}

// renew gets new tokens for those of a login. A refusal is an errRefused.
func (s *Server) renew(ctx context.Context, old Tokens) (Tokens, error) {
	source := s.flow(redirect).TokenSource(s.with(ctx), &oauth2.Token{RefreshToken: old.Refresh.Reveal()})
	token, err := source.Token()
	if err != nil {
		return Tokens{}, plain(err)
	}
	return tokensOf(token, old), nil
}

// tokensOf returns the tokens of an answer, with what it leaves out from old.
func tokensOf(token *oauth2.Token, old Tokens) Tokens {
	id, _ := token.Extra("id_token").(string)
	access := claimsOf(token.AccessToken)
	t := Tokens{
		Access:  provider.NewSecret(token.AccessToken),
		Refresh: cmp.Or(provider.NewSecret(token.RefreshToken), old.Refresh),
		Account: cmp.Or(claimsOf(id).Auth.Account, access.Auth.Account, old.Account),
		Expires: token.Expiry.Round(time.Second),
	}
	if t.Expires.IsZero() && access.Expires > 0 {
		t.Expires = time.Unix(access.Expires, 0)
	}
	return t
}

// errRefused means that the server does not accept a code or a refresh token. Another try does not help.
var errRefused = errors.New("the server refuses the login")

// plain returns an error of oauth2 without the server's text and without the URL, which may hold a code or a token.
func plain(err error) error {
	if answer, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := answer.Response.StatusCode
		code := cmp.Or(answer.ErrorCode, codeOf(answer.Body))
		if !word().MatchString(code) {
			code = "no reason"
		}
		err := fmt.Errorf("HTTP %d (%s)", status, code)
		if status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden {
			return fmt.Errorf("%w: %w", errRefused, err)
		}
		return err
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return errors.New("the answer has no token")
}

// codeOf returns the code of an error in the form of OpenAI's model servers, "" if the text is not one.
func codeOf(body []byte) string {
	var answer struct {
		Error struct{ Code string }
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	return answer.Error.Code
}

// word matches the codes of servers. Other texts may hold anything, such as a token.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_]{1,40}$`) })
