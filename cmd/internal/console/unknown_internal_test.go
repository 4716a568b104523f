package console

import (
	"context"
	"testing"
)

// commandsWithDefaults are commands of which two are defaults.
type commandsWithDefaults struct {
	Session struct {
		List   struct{}                 `cmd:"" default:"withargs"`
		Show   struct{ Session string } `cmd:""`
		Delete struct{}                 `cmd:""`
	} `cmd:""`
	Trigger struct {
		List   struct{} `cmd:"" default:"withargs"`
		Remove struct{} `cmd:""`
		Fork   struct {
			From string `arg:""`
		} `cmd:""`
	} `cmd:""`
}

func TestUnknownCommands(t *testing.T) {
	hints := map[string]string{"start": "lashd starts by itself"}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"trigger", "delete", "x"}, "unknown command: lash trigger delete; did you mean: lash trigger remove? See lash trigger --help"},
		{[]string{"session", "remove", "x"}, "unknown command: lash session remove; did you mean: lash session delete? See lash session --help"},
		{[]string{"session", "shwo"}, "unknown command: lash session shwo; did you mean: lash session show? See lash session --help"},
		{[]string{"session", "ses_01"}, "unknown command: lash session ses_01; did you mean: lash session show ses_01? See lash session --help"},
		{[]string{"session", "qqqq"}, "unknown command: lash session qqqq; see lash session --help"},
		{[]string{"session", "list", "x"}, "unexpected argument x; see lash session list --help"},
		{[]string{"triggers"}, "unknown command: lash triggers; did you mean: lash trigger? See lash --help"},
		{[]string{"start"}, "lashd starts by itself"},
		{[]string{"trigger", "fork"}, "missing: <from>; see lash trigger fork --help"},
	} {
		t.Run("issue/21-5 an unknown command points to the right help and to what was meant: "+test.want, func(t *testing.T) {
			_, err := Parser(context.Background(), "lash", "", &commandsWithDefaults{}).Parse(test.args)
			if err == nil {
				t.Fatal("the command was accepted")
			}
			if got := UsageError("lash", err, hints).Error(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
