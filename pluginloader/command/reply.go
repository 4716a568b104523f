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

// strength orders what hooks say: of several the strongest counts.
type strength int

const (
	silent strength = iota // no opinion
	allow
	ask
	deny
	halt // the turn is to end
)

func (s strength) String() string { return []string{"nothing", "allow", "ask", "deny", "halt"}[s] }

// opinion is what one hook says, whichever way it says it.
type opinion struct {
	strength strength
	reason   string
	context  string          // for the model
	message  string          // for people
	updated  json.RawMessage // other arguments of the call, in its own words; nil: none
	output   json.RawMessage // another result of the call; nil: none
}

// reply is the JSON that a hook answers with. Fields that are not known are let be: other agents have more.
type reply struct {
	Continue   *bool     `json:"continue"`
	StopReason string    `json:"stopReason"`
	Message    string    `json:"systemMessage"`
	Decision   string    `json:"decision"`
	Reason     string    `json:"reason"`
	Specific   *specific `json:"hookSpecificOutput"`
}

type specific struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision"`
	Reason   string          `json:"permissionDecisionReason"`
	Updated  json.RawMessage `json:"updatedInput"`
	Context  string          `json:"additionalContext"`
	Output   json.RawMessage `json:"updatedToolOutput"`
}

var decisions = map[string]strength{"": silent, "approve": allow, "allow": allow, "ask": ask, "block": deny, "deny": deny}

var errTwoValues = errors.New("there is more after it")

// parseReply reads what a hook says on its stdout. A text that does not begin as an object does is none: ok is false.
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

// opinion is what a reply comes to.
func (r *reply) opinion(event string) (opinion, error) {
	s := specific{}
	if r.Specific != nil {
		s = *r.Specific
	}
	if s.Event != "" && s.Event != event {
		return opinion{}, fmt.Errorf("it is for the event %q", s.Event)
	}
	o := opinion{context: s.Context, message: r.Message, updated: given(s.Updated), output: given(s.Output)}
	for _, said := range []struct{ decision, reason string }{{r.Decision, r.Reason}, {s.Decision, s.Reason}} {
		of, known := decisions[said.decision]
		if !known {
			return opinion{}, fmt.Errorf("there is no decision %.80q", said.decision)
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

// given is a value that is there.
func given(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// textIsContext are the events at which a text on stdout is told to the model.
var textIsContext = map[string]bool{"UserPromptSubmit": true, "SessionStart": true}

// spoken is what a run that ended by itself says: by its exit code, and by what it wrote.
func (r *ran) spoken(event string, diagnostic *regexp.Regexp) (opinion, error) {
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

// newDiagnostic finds the lines that interpreters write about a line of sh, or about scripts in a directory.
func newDiagnostic(root string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:` +
		`(?:\S*/)?(?:ba|da|a|z|k|mk)?sh: (?:(?:line )?\d+: |can't open|cannot open|Can't open|[^:\n]+: (?:No such file|Permission denied|not found|command not found))|` +
		regexp.QuoteMeta(root) + `/[^:\n]*: (?:line )?\d+: |` +
		`\S*python[\d.]*: can't |Can't open perl script ` +
		`).*\n?`)
}

// blocked is what exit code 2 says: a refusal, if there is a reason for it. Interpreters end so, too, when they cannot open or
// read a script; what they say is no reason.
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

// why is what a run said of its failure.
func (r *ran) why() string {
	if text := clean(r.stderr); text != "" {
		return shortened(text, 500)
	}
	return "stderr was empty"
}

// clean is a text of any bytes.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD")), "\x00", "\uFFFD")
}

// shortened is the beginning of a text that is longer than limit bytes.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]", text[:limit], len(text)-limit)
}
