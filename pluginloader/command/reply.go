package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// strength is a hook's decision. Of several decisions, the highest wins.
type strength int

const (
	// The decisions, from weakest to strongest.
	silent strength = iota
	allow
	ask
	deny
	halt // end the turn
)

// String returns the decision for the log.
func (s strength) String() string { return []string{"nothing", "allow", "ask", "deny", "halt"}[s] }

// opinion is the result of one hook, whichever way the hook expressed it: by exit code, stderr or
// JSON. The zero value means that the hook has no opinion.
type opinion struct {
	strength strength
	reason   string
	context  string          // text for the model
	message  string          // text for people
	updated  json.RawMessage // changed arguments in the hook's format; nil: unchanged
	output   json.RawMessage // replacement of the call's result; nil: none
}

// reply is the JSON on a hook's stdout. Unknown fields are ignored, because other agents have more.
// The names are those of other agents and must not change.
type reply struct {
	Continue   *bool     `json:"continue"`
	StopReason string    `json:"stopReason"`
	Message    string    `json:"systemMessage"`
	Decision   string    `json:"decision"`
	Reason     string    `json:"reason"`
	Specific   *specific `json:"hookSpecificOutput"`
}

// specific is the part of a reply that depends on the event. Its fields override nothing: opinion
// combines them with those of reply.
type specific struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision"`
	Reason   string          `json:"permissionDecisionReason"`
	Updated  json.RawMessage `json:"updatedInput"`
	Context  string          `json:"additionalContext"`
	Output   json.RawMessage `json:"updatedToolOutput"`
}

// decisions maps the words of all agents to decisions.
var decisions = map[string]strength{"": silent, "approve": allow, "allow": allow, "ask": ask, "block": deny, "deny": deny}

// errTwoValues rejects output after the JSON object, which would otherwise be lost silently.
var errTwoValues = errors.New("more output follows the JSON object")

// parseReply parses a hook's stdout. ok is false if the text does not start like a JSON object;
// then it is plain text and not a reply. A text that starts like an object but is not valid is an
// error, so that a decision with a typing error is never ignored.
func parseReply(event string, stdout []byte) (o opinion, ok bool, err error) {
	text := bytes.TrimSpace(stdout)
	if !bytes.HasPrefix(text, []byte("{")) {
		return opinion{}, false, nil
	}
	var r reply
	d := json.NewDecoder(bytes.NewReader(text))
	err = d.Decode(&r)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errTwoValues
		}
	}
	if err == nil {
		o, err = r.opinion(event)
	}
	if err != nil {
		return opinion{}, true, fmt.Errorf("its output is not a valid decision: %w", err)
	}
	return o, true, nil
}

// opinion combines the two forms of a reply: the older fields at the top level and the newer ones
// in hookSpecificOutput. The stronger decision wins. continue: false overrides both.
func (r *reply) opinion(event string) (opinion, error) {
	s := specific{}
	if r.Specific != nil {
		s = *r.Specific
	}
	if s.Event != "" && s.Event != event {
		return opinion{}, fmt.Errorf("hookEventName is %q, which is not the event of this hook", s.Event)
	}
	o := opinion{context: s.Context, message: r.Message, updated: nonNull(s.Updated), output: nonNull(s.Output)}
	for _, said := range []struct{ decision, reason string }{{r.Decision, r.Reason}, {s.Decision, s.Reason}} {
		of, known := decisions[said.decision]
		if !known {
			return opinion{}, fmt.Errorf("unknown decision %.80q; use approve, allow, ask, block or deny", said.decision)
		}
		if of >= o.strength {
			o.strength = of
			if said.reason != "" {
				o.reason = said.reason
			}
		}
	}
	if r.Continue != nil && !*r.Continue {
		o.strength = halt
		if r.StopReason != "" {
			o.reason = r.StopReason
		}
	}
	return o, nil
}

// nonNull returns nil for JSON null, otherwise raw.
func nonNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// textIsContext lists the events at which plain text on stdout goes to the model.
var textIsContext = map[string]bool{"UserPromptSubmit": true, "SessionStart": true}

// decision returns the result of a run that ended by itself. Exit code 0 means that stdout decides,
// 2 blocks, and every other code is a failure.
func (r *ran) decision(event string, diagnostic *regexp.Regexp) (opinion, error) {
	switch r.exit.Code {
	case 0:
		o, isJSON, err := parseReply(event, r.stdout)
		if !isJSON && textIsContext[event] {
			o.context = clean(r.stdout)
		}
		return o, err
	case 2:
		return r.blocked(event, diagnostic)
	case 126, 127:
		return opinion{}, fmt.Errorf("it could not run: %s", r.why())
	}
	return opinion{}, fmt.Errorf("it ended with exit code %d: %s", r.exit.Code, r.why())
}

// newDiagnostic returns an expression for the lines that interpreters print about errors in a
// script, such as "sh: 1: ...: not found". root is the plugin's directory, where the scripts are.
func newDiagnostic(root string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:` +
		`(?:\S*/)?(?:ba|da|a|z|k|mk)?sh: (?:(?:line )?\d+: |can't open|cannot open|Can't open|[^:\n]+: (?:No such file|Permission denied|not found|command not found))|` +
		regexp.QuoteMeta(root) + `/[^:\n]*: (?:line )?\d+: |` +
		`\S*python[\d.]*: can't |Can't open perl script ` +
		`).*\n?`)
}

// blocked returns the result of exit code 2: a denial, if stderr has a reason. Interpreters also
// exit with 2 if they cannot read a script. Their messages are no reason, so such a run is a
// failure and does not block the call by accident.
func (r *ran) blocked(event string, diagnostic *regexp.Regexp) (opinion, error) {
	o, _, err := parseReply(event, r.stdout)
	if err != nil {
		o = opinion{} // the reason on stderr counts
	}
	if text := clean(diagnostic.ReplaceAll(r.stderr, nil)); text != "" && o.strength != halt {
		o.reason = text
	}
	if o.reason == "" {
		return opinion{}, fmt.Errorf("it exited with code 2 but wrote no reason to stderr, so lashd ignores it: %s", r.why())
	}
	o.strength = max(o.strength, deny)
	return o, nil
}

// why returns what a failed run wrote to stderr, for an error.
func (r *ran) why() string {
	if text := clean(r.stderr); text != "" {
		return shortened(text, 500)
	}
	return "stderr was empty"
}

// clean returns output of a program as valid UTF-8 without NUL characters.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD")), "\x00", "\uFFFD")
}

// shortened cuts a text after limit bytes, at the start of a character, and says how much is
// missing.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]", text[:limit], len(text)-limit)
}
