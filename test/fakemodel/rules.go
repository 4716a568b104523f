package fakemodel

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// authorized checks the headers of a request, if the server is strict, and rejects it.
func (s *Server) authorized(w http.ResponseWriter, a api, h http.Header) bool {
	s.mu.Lock()
	strict := s.strict
	s.mu.Unlock()
	if strict == nil {
		return true
	}
	key, err := a.authenticate(h)
	switch {
	case err != nil:
		s.refuse(w, a, err)
	case key == "" || *strict != "" && key != *strict:
		writeError(w, a, http.StatusUnauthorized, "invalid key "+key)
	default:
		return true
	}
	return false
}

// issue keeps a signature that the model of an API gave.
func (s *Server) issue(api, model, signature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := api + " " + model
	if s.issued[name] == nil {
		s.issued[name] = map[string]bool{}
	}
	s.issued[name][signature] = true
}

// allowed checks the conversation of a request, if the server is strict.
func (s *Server) allowed(r *Request, t tail) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strict == nil {
		return nil
	}
	if r.API != ChatAPI && !t.Stream {
		return errors.New("only Chat Completions has replies that are not streamed")
	}
	c, err := parseChat(r)
	if err != nil {
		return err
	}
	return errors.Join(pairs(r.API, c.Messages), signatures(r.API, c.Messages, s.issued[r.API+" "+t.Model]))
}

// callIDs match the ids of calls that each API accepts. OpenAI takes fewer bytes in Chat Completions than elsewhere.
var callIDs = map[string]*regexp.Regexp{ChatAPI: regexp.MustCompile(`^.{1,40}$`), ResponsesAPI: plainID, AnthropicAPI: plainID, GeminiAPI: plainID}

var plainID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// pairs checks that each call has exactly one result, which comes before anything else.
func pairs(api string, messages []Message) error {
	open := map[string]bool{} // calls without a result
	answering := false        // a result came since the last call
	for i, m := range messages {
		switch {
		case m.Role == "tool":
			if !open[m.ToolCallID] {
				return fmt.Errorf("message %d is the result of %q, which was not called", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			answering = true
			continue
		case len(open) > 0 && (answering || m.Role == "user"):
			return fmt.Errorf("message %d comes before the results of %v", i, open)
		}
		answering = false
		for _, c := range m.ToolCalls {
			if !callIDs[api].MatchString(c.ID) || open[c.ID] {
				return fmt.Errorf("message %d has a call with the id %q", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("there is no result of %v", open)
	}
	return nil
}

// unsigned is what Google documents for calls of other models.
const unsigned = "skip_thought_signature_validator"

// signatures checks that reasoning is the model's own, and in Responses that something follows it.
func signatures(api string, messages []Message, issued map[string]bool) error {
	for i, m := range messages {
		for _, signature := range m.Signatures {
			if !issued[signature] && (api != GeminiAPI || signature != unsigned) {
				return fmt.Errorf("message %d has the signature %q, which this model did not give", i, signature)
			}
		}
		if api == ResponsesAPI && m.Signatures != nil && (i+1 == len(messages) || messages[i+1].Role != "assistant") {
			return fmt.Errorf("item %d is reasoning without the item that must follow it", i)
		}
	}
	return nil
}
