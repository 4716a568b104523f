package fakemodel

import (
	"net/http"
	"strings"
)

// The APIs that a Server speaks, under the names that config.toml has for them.
const (
	ChatAPI      = "chat"      // OpenAI Chat Completions
	ResponsesAPI = "responses" // OpenAI Responses
	AnthropicAPI = "anthropic" // Anthropic Messages
	GeminiAPI    = "gemini"    // Google Gemini
)

// APIs lists the APIs.
func APIs() []string { return []string{ChatAPI, ResponsesAPI, AnthropicAPI, GeminiAPI} }

// api is how one API writes requests and replies. Its values have no state.
type api interface {
	list() string                                           // member of a request that is the conversation
	settings(chat *Chat, path string, rest []byte) error    // decodes a request without its conversation
	messages(element []byte) ([]Message, error)             // decodes one element of the conversation
	authenticate(h http.Header) (key string, problem error) // the key of a request; problem: a required header is missing
	failure(status int, message string) any                 // body of a rejection
	stream(r *reply) wire                                   // of a reply that is about to begin
}

// wire writes one streamed reply as events of its API. Its methods append to the reply's buffer, and each text is one delta.
type wire interface {
	begin()
	text(delta string)
	prose(i, size int) // text, for markers: it allocates nothing
	reasoning(delta, signature string)
	calls(calls []Call)  // ids are set
	fault(reason string) // an error event
	end(st Step)         // the API's evidence of a complete reply
}

// apis has the APIs by name.
var apis = map[string]api{
	ChatAPI: chatAPI{}, ResponsesAPI: responsesAPI{}, AnthropicAPI: anthropicAPI{}, GeminiAPI: geminiAPI{},
}

// apiOf returns the name of the API that a path belongs to.
func apiOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/v1beta/"):
		return GeminiAPI
	case strings.HasSuffix(path, "/messages"):
		return AnthropicAPI
	case strings.HasSuffix(path, "/responses"):
		return ResponsesAPI
	}
	return ChatAPI
}

// Base returns what a client of the API takes as its base URL, for a server at root, such as "http://127.0.0.1:1".
func Base(root, api string) string {
	if api == GeminiAPI {
		return root + "/v1beta"
	}
	return root + "/v1"
}

// bearer returns the key of an Authorization header.
func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}
