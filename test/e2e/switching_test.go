package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// unsigned is what Gemini gets in place of the signature of a call that another model made.
const unsigned = "skip_thought_signature_validator"

// switches are the turns of a session that changes its model: the API of each turn, the id that the vendor gives its call, what the
// last request of the turn has, and what the record of its last call says about what was left out.
var switches = []struct {
	api, callID string
	signatures  []string // in the order of the conversation
	images      int
	dropped     []protocol.OptionReceipt
}{
	{fakemodel.AnthropicAPI, "toolu_01", []string{"signed-0"}, 1, nil},
	{fakemodel.GeminiAPI, "", []string{unsigned, "signed-1"}, 1, otherRoute},
	{fakemodel.ResponsesAPI, "fc_03", []string{"signed-2"}, 1, otherRoute},
	{fakemodel.ChatAPI, "functions.read:0", nil, 0, slices.Concat(unread, otherRoute)},
	{fakemodel.AnthropicAPI, "toolu_05", []string{"signed-0", "signed-4"}, 1, otherRoute},
	{fakemodel.GeminiAPI, "", []string{unsigned, "signed-1", unsigned, unsigned, unsigned, "signed-5"}, 1, otherRoute},
	{fakemodel.ResponsesAPI, "fc_07", []string{"signed-2", "signed-6"}, 1, otherRoute},
	{fakemodel.ChatAPI, "functions.read:1", nil, 0, slices.Concat(unread, otherRoute)},
}

// Receipts of what a request leaves out.
var (
	otherRoute = []protocol.OptionReceipt{{Option: "reasoning", Fate: "omittedOtherRoute"}}
	unread     = []protocol.OptionReceipt{{Option: "attachments", Fate: "omittedUnsupported"}}
)

func TestSwitchingProviders(t *testing.T) {
	t.Run("part9/switch calls, reasoning and images of a session outlive a change of its provider", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: newVendors(t)}
		s.begin()
		for i, sw := range switches {
			if i == 4 { // what the next turns replay comes from the database
				s.daemon.kill()
				s.restart()
			}
			s.peer.uses(s.session, sw.api)
			read := uses("read", map[string]string{"path": "greeting.txt"})
			read.Calls[0].ID = sw.callID
			s.model.Push(
				to(fmt.Sprint("turn ", i), 0, step(thinks("Hm.", fmt.Sprint("signed-", i)), says("I read."), read)),
				to(fmt.Sprint("turn ", i), 1, step(says(fmt.Sprint("Done with ", i)))),
			)
			report := s.switched(i)
			if got := fates(report.Calls[len(report.Calls)-1]); !slices.Equal(got, sw.dropped) {
				t.Errorf("turn %d with %s: the record of the call says %+v was left out, want %+v", i, sw.api, got, sw.dropped)
			}
			s.carried(i)
		}
		if err := s.model.Check(); err != nil {
			t.Error(err)
		}
	})
}

// switched runs the turn of a switch. The first one has an image.
func (s *scene) switched(i int) protocol.TurnReport {
	s.t.Helper()
	input := text(fmt.Sprint("turn ", i))
	if i == 0 {
		input = append(input, protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Type: "image/png", Name: "dot.png", Data: []byte(dot)}})
	}
	turn := ask[protocol.TurnStartResult](s.peer, "turn/start", protocol.TurnStartParams{SessionID: s.session, Input: input}).TurnID
	r := s.peer.wait(turn)
	if want := fmt.Sprint("Done with ", i); r.State != protocol.TurnCompleted || r.Output.Safe != want || len(r.Calls) != 2 {
		s.t.Fatalf("turn %d is %s: %+v, %+v, output %+v; want %q", i, r.State, r.Outcome, r.Issues, r.Output, want)
	}
	return r
}

// fates returns the receipts of a call that are about what was left out.
func fates(c protocol.CallRecord) (left []protocol.OptionReceipt) {
	for _, o := range c.Options {
		if o.Fate != "applied" {
			left = append(left, o)
		}
	}
	slices.SortFunc(left, func(a, b protocol.OptionReceipt) int { return cmp.Compare(a.Option, b.Option) })
	return left
}

// carried checks what the last request has of all turns so far.
func (s *scene) carried(i int) {
	s.t.Helper()
	all := s.model.Requests()
	last := all[len(all)-1]
	var signatures []string
	calls, images := 0, 0
	for _, m := range last.Chat.Messages {
		signatures = append(signatures, m.Signatures...)
		calls += len(m.ToolCalls)
		for _, image := range m.Images {
			images++
			if image.Type != "image/png" || string(image.Data) != dot {
				s.t.Errorf("turn %d: the model sees %q of type %s", i, image.Data, image.Type)
			}
		}
	}
	sw := switches[i]
	if last.API != sw.api || calls != i+1 || images != sw.images || !slices.Equal(signatures, sw.signatures) {
		s.t.Errorf("turn %d: the %s request has %d calls, %d images and the signatures %q; want a %s request with %d, %d and %q",
			i, last.API, calls, images, signatures, sw.api, i+1, sw.images, sw.signatures)
	}
}

// dot is a PNG image with one pixel.
const dot = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
