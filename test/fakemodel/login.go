package fakemodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The values that a Login expects of its clients. They are those of OpenAI's Codex CLI.
const (
	loginClient   = "app_EMoamEEZ73f0CkXaXp7hrann"
	loginRedirect = "http://localhost:1455/auth/callback"
	// LoginAccount is the id of the account that a Login names in its tokens.
	LoginAccount = "acct-7f3a2b"
	// DeviceCode is the code that a Login asks a person to enter.
	DeviceCode = "ABCD-12345"
)

// Login is an authorization server for ChatGPT accounts. Each refresh token works once. It is an http.Handler, and Guard makes a model
// server accept its tokens only. Set the fields before the first request.
type Login struct {
	Mark      string        // part of each token and code, to search for
	Lifetime  time.Duration // of access tokens; default an hour
	Pause     time.Duration // before each answer to a refresh token
	RefuseAll bool          // the model server refuses even valid tokens

	mu       sync.Mutex
	made     int               // tokens and codes made so far
	codes    map[string]string // code to its challenge
	refresh  string            // the one that works; "": none
	access   string            // the one that works; "": none
	entered  bool              // the device code was entered
	renewals int               // refresh tokens that were accepted
	reused   int               // refresh tokens that were not
}

// Renewals returns how many refresh tokens the server has accepted and how many it has refused.
func (l *Login) Renewals() (accepted, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewals, l.reused
}

// Revoke makes the model server refuse the access token of now, and the authorization server the refresh token too if all is set.
func (l *Login) Revoke(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.access = ""
	if all {
		l.refresh = ""
	}
}

// Enter enters the device code.
func (l *Login) Enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entered = true
}

// ServeHTTP implements http.Handler.
func (l *Login) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/oauth/authorize":
		l.authorize(w, r)
	case "/oauth/token":
		l.token(w, r)
	case "/api/accounts/deviceauth/usercode":
		writeJSON(w, http.StatusOK, map[string]string{"device_auth_id": "device-1", "user_code": DeviceCode, "interval": "0"})
	case "/api/accounts/deviceauth/token":
		l.device(w, r)
	default:
		http.NotFound(w, r)
	}
}

// authorize logs a person in at once and sends the browser to the client's address.
func (l *Login) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{
		"client_id": loginClient, "redirect_uri": loginRedirect, "response_type": "code", "code_challenge_method": "S256",
		"scope": "openid profile email offline_access",
	} {
		if q.Get(name) != want {
			http.Error(w, fmt.Sprintf("%s is %q, want %q", name, q.Get(name), want), http.StatusBadRequest)
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	http.Redirect(w, r, loginRedirect+"?"+url.Values{"code": {l.code(q.Get("code_challenge"))}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

// code makes a code for a challenge.
func (l *Login) code(challenge string) string {
	if l.codes == nil {
		l.codes = map[string]string{}
	}
	code := l.next("code")
	l.codes[code] = challenge
	return code
}

// next makes a text that was never made before.
func (l *Login) next(kind string) string {
	l.made++
	return fmt.Sprintf("%s-%s-%d", kind, l.Mark, l.made)
}

// device answers a client that waits until the code is entered.
func (l *Login) device(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID   string `json:"device_auth_id"`
		Code string `json:"user_code"`
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.ID != "device-1" || asked.Code != DeviceCode || !l.entered {
		writeJSON(w, http.StatusForbidden, map[string]string{})
		return
	}
	verifier := l.next("verifier")
	writeJSON(w, http.StatusOK, map[string]string{"authorization_code": l.code(challengeOf(verifier)), "code_verifier": verifier, "code_challenge": challengeOf(verifier)})
}

// challengeOf returns the PKCE challenge of a verifier.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// token gives tokens for a code or a refresh token.
func (l *Login) token(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("grant_type") == "refresh_token" {
		time.Sleep(l.Pause)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason := l.refusal(r); reason != "" {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": map[string]string{"code": reason, "message": "no: " + r.PostForm.Encode()}})
		return
	}
	lifetime := l.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	l.refresh, l.access = l.next("refresh"), l.jwt(lifetime)
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": l.access, "refresh_token": l.refresh, "id_token": l.jwt(lifetime), "token_type": "Bearer", "expires_in": int(lifetime.Seconds()),
	})
}

// refusal returns why a request for tokens is refused, "" if it is not. It uses up the code or the refresh token.
func (l *Login) refusal(r *http.Request) string {
	if r.FormValue("client_id") != loginClient {
		return "invalid_client"
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		challenge, ok := l.codes[r.FormValue("code")]
		delete(l.codes, r.FormValue("code"))
		if !ok || challenge != challengeOf(r.FormValue("code_verifier")) {
			return "invalid_grant"
		}
		return ""
	case "refresh_token":
		if l.refresh == "" || r.FormValue("refresh_token") != l.refresh {
			l.reused++
			return "refresh_token_reused"
		}
		l.renewals++
		return ""
	}
	return "unsupported_grant_type"
}

// jwt makes a token that names the account.
func (l *Login) jwt(lifetime time.Duration) string {
	payload, _ := json.Marshal(map[string]any{ // texts and a number
		"exp": time.Now().Add(lifetime).Unix(), "https://api.openai.com/auth": map[string]string{"chatgpt_account_id": LoginAccount},
	})
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(payload) + "." + l.next("access")
}

// Guard returns a model server that takes only calls with the newest access token and the account, and that is as strict as the one for
// ChatGPT accounts: it wants instructions, streams and keeps nothing, and knows neither an output limit nor a temperature.
func (l *Login) Guard(model http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		access := l.access
		l.mu.Unlock()
		if l.RefuseAll || access == "" || r.Header.Get("Authorization") != "Bearer "+access || r.Header.Get("Chatgpt-Account-Id") != LoginAccount {
			writeJSON(w, http.StatusUnauthorized, map[string]any{"error": map[string]string{"code": "token_expired", "message": "refused: " + r.Header.Get("Authorization")}})
			return
		}
		body, err := io.ReadAll(r.Body)
		if fault := strictFault(body, r.Header); err != nil || fault != "" {
			writeJSON(w, http.StatusBadRequest, map[string]string{"detail": fault})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.URL.Path = strings.Replace(r.URL.Path, "/backend-api/codex", "/v1", 1)
		model.ServeHTTP(w, r)
	})
}

// strictFault returns the fault of a request, "" if it has none.
func strictFault(body []byte, h http.Header) string {
	var r map[string]any
	switch err := json.Unmarshal(body, &r); {
	case err != nil:
		return err.Error()
	case r["instructions"] == nil || r["instructions"] == "":
		return "Instructions are required"
	case r["store"] != false:
		return "Store must be set to false"
	case r["stream"] != true:
		return "Stream must be set to true"
	case r["max_output_tokens"] != nil:
		return "Unsupported parameter: max_output_tokens"
	case r["temperature"] != nil:
		return "Unsupported parameter: temperature"
	case h.Get("Originator") == "":
		return "originator is missing"
	}
	return ""
}

// writeJSON answers with a status and a value.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}
