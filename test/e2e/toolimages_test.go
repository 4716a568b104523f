package e2e

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/test/fakemodel"
)

// TestToolImages has the model of each API read an image of the workspace. The daemon is killed before the second turn. The model of Chat
// Completions reads only text here.
func TestToolImages(t *testing.T) {
	for _, api := range fakemodel.APIs() {
		t.Run("runtime/S15 an image that read returns reaches the model also after kill -9, on "+api, func(t *testing.T) {
			t.Parallel()
			s := &scene{world: newVendors(t)}
			s.begin()
			s.peer.uses(s.session, api)
			image := pngOf(1_500_000)
			s.write(filepath.Join(s.work, "a.png"), string(image))
			s.model.Push(
				to("look", 0, step(uses("read", map[string]string{"path": "a.png"}))),
				to("look", 1, step(says("Seen."))),
				to("again", 0, step(says("Seen again."))),
			)
			report := s.peer.turn(s.session, "look")
			if out := report.ToolCalls[0].Output; len(out.Attachments) != 1 || len(out.Attachments[0].Data) > 0 || out.Attachments[0].Digest == "" {
				t.Errorf("the record of the call has %+v", out)
			}
			dropped := unread
			if api != fakemodel.ChatAPI {
				dropped = nil
			}
			if got := fates(report.Calls[len(report.Calls)-1]); !slices.Equal(got, dropped) {
				t.Errorf("the record of the call says %+v was left out, want %+v", got, dropped)
			}
			s.seesImage(api, "in the first turn", image)
			s.daemon.kill()
			s.restart()
			if r := s.peer.turn(s.session, "again"); r.Output.Safe != "Seen again." {
				t.Errorf("the second turn says %q", r.Output.Safe)
			}
			s.seesImage(api, "after the crash", image)
			if err := s.model.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// seesImage checks that the newest request has an image in the result of a tool, or a note if the model reads only text.
func (s *scene) seesImage(api, when string, image []byte) {
	s.t.Helper()
	requests := s.model.Requests()
	chat := requests[len(requests)-1].Chat
	images, notes := 0, 0
	for _, m := range chat.Messages {
		for _, i := range m.Images {
			if m.Role == "tool" && bytes.Equal(i.Data, image) {
				images++
			}
		}
		if m.Role == "tool" && strings.Contains(string(m.Content), "[attachment a.png, image/png: this model cannot read it]") {
			notes++
		}
	}
	if api == fakemodel.ChatAPI {
		images, notes = notes, images
	}
	if images != 1 || notes != 0 {
		s.t.Errorf("%s the request on %s has the image %d times and %d notes", when, api, images, notes)
	}
}
