package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/cmd/internal/console"
)

func TestDetail(t *testing.T) {
	data := json.RawMessage(`{"kind":"sessionNotFound","retry":"never","outcome":"none"}`)
	wire := &jsonrpc2.Error{Code: -32002, Message: "there is no session ses_x", Data: &data}
	t.Run("issue/21-5 an error of the daemon is one line that says what failed and what to do", func(t *testing.T) {
		if got, want := console.Explain(wire), "there is no session ses_x; lash session lists the sessions"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("issue/21-5 --verbose adds the kind of an error and its causes", func(t *testing.T) {
		if got, want := console.Detail(wire), []string{"kind: sessionNotFound (code -32002); retry: never; outcome: none"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		err := console.Exit(console.ExitFailed, fmt.Errorf("read the file: %w", errors.New("no space")))
		if got, want := console.Detail(err), []string{"cause: no space (*errors.errorString)"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := console.Detail(console.Exit(console.ExitFailed, nil)); got != nil {
			t.Errorf("an error that was printed has the detail %q", got)
		}
	})
}
