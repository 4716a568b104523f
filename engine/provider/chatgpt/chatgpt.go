// Package chatgpt keeps logins of ChatGPT accounts, which pay for model calls in place of an API key.
//
// A command logs in with a Server and stores the Tokens. The daemon reads them through an Account, which renews them before they expire and
// when the model server refuses them. The addresses and the client id are those of OpenAI's public Codex CLI; OpenAI documents none of
// them, and nothing here was tried against its servers.
package chatgpt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"lashd/engine/provider"
)

const (
	// Issuer is the address of the server that logs people in.
	Issuer = "https://auth.openai.com"
	// BaseURL is the address of the model server for ChatGPT accounts.
	BaseURL = "https://chatgpt.com/backend-api/codex"
	// AccountHeader is the header of a model call that names the account.
	AccountHeader = "Chatgpt-Account-Id"
)

// Tokens are one login. The keystore holds them in the place of an API key.
type Tokens struct {
	Access  provider.Secret // for model calls
	Refresh provider.Secret // gets the next Tokens; the server may accept it only once
	Account string          // id of the ChatGPT account, "" if the server did not name one
	Expires time.Time       // of Access; zero: not known
}

// stored is the form of Tokens in the keystore.
type stored struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh"`
	Account string    `json:"account,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// Secret returns the tokens as one key for the keystore.
func (t Tokens) Secret() provider.Secret {
	text, err := json.Marshal(stored{t.Access.Reveal(), t.Refresh.Reveal(), t.Account, t.Expires})
	if err != nil {
		panic("chatgpt: encode tokens: " + err.Error()) // texts and a time
	}
	return provider.NewSecret(string(text))
}

// Parse reads what Secret returned. The zero Secret has no tokens. The error does not quote the text.
func Parse(key provider.Secret) (Tokens, error) {
	var s stored
	if key == (provider.Secret{}) {
		return Tokens{}, nil
	}
	if err := json.Unmarshal([]byte(key.Reveal()), &s); err != nil || s.Access == "" {
		return Tokens{}, errors.New("the stored login is damaged; log in again")
	}
	return Tokens{provider.NewSecret(s.Access), provider.NewSecret(s.Refresh), s.Account, s.Expires}, nil
}

// claims are the parts of a token's contents that lashd uses. The server has issued the token over TLS, so its signature is not checked.
type claims struct {
	Expires int64 `json:"exp"` // in seconds since 1970; 0: not known
	Auth    struct {
		Account string `json:"chatgpt_account_id"`
	} `json:"https://api.openai.com/auth"`
}

// claimsOf returns the claims of a JSON web token; none if the text is not one.
func claimsOf(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(data, &c) != nil {
		return claims{}
	}
	return c
}
