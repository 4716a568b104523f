package chatcompletions_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/rpc/protocol"
)

// callOf is a fragment of a call's arguments.
func callOf(index int, args string) string {
	return deltaOf(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%[1]d","function":{"name":"f","arguments":%s}}]}`, index, strconv.Quote(args)))
}

// TestEndlessReplies has servers that do not stop by themselves: each must see that the client left.
func TestEndlessReplies(t *testing.T) {
	piece := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		name string
		data func(i int) string
		code string
		kept int // bytes of the reply, at least; at most it is the limit
	}{
		{"text", func(int) string { return textDelta("content", piece) }, "reply_too_long", 1_500_000},
		{"reasoning", func(int) string { return textDelta("reasoning", piece) }, "reply_too_long", 1_500_000},
		{"control characters", func(int) string { return textDelta("content", strings.Repeat("\x01", 10_000)) }, "reply_too_long", 250_000},
		{"many parts", func(i int) string { return textDelta([]string{"content", "reasoning"}[i%2], "x") }, "reply_too_long", 20_000},
		{"arguments", func(int) string { return callOf(0, piece) }, "reply_too_long", 0},
		{"text between arguments", func(i int) string { return callOf(0, "["+piece) + "\ndata: " + textDelta("content", piece) }, "reply_too_long", 700_000},
		{"calls", func(i int) string { return callOf(i, "{}") }, "too_many_calls", 0},
		{"calls between text", func(i int) string { return callOf(i, "{}") + "\ndata: " + textDelta("content", "x") }, "too_many_calls", 255},
		{"a line", func(int) string { return `{"x":"` + strings.Repeat("x", 5<<20) + `"}` }, "reply_too_long", 0},
	} {
		t.Run("runtime/M02 "+c.name, func(t *testing.T) {
			left := make(chan struct{})
			p := serve(t, chatcompletions.Config{}, func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				for i := 0; r.Context().Err() == nil; i++ {
					fmt.Fprintf(w, "data: %s\n\n", c.data(i))
				}
			})
			reply, err := ask(t.Context(), p, request(user("hi")))
			<-left
			if codeOf(err) != c.code || err.Retryable {
				t.Errorf("error %+v, want %s, terminal", err, c.code)
			}
			if kept := size(&reply); kept < c.kept || kept > 3<<19 {
				t.Errorf("%d bytes kept, want %d to 1.5 MiB", kept, c.kept)
			}
		})
	}
}

func size(r *provider.Reply) int {
	n := 0
	for _, part := range r.Parts {
		n += len(part.Text)
	}
	return n
}

func TestOddUsage(t *testing.T) {
	const most = 1 << 40
	for usage, want := range map[string]protocol.Usage{
		`{"prompt_tokens":9223372036854775807,"completion_tokens":1e300}`:                                              {Input: most, Output: most},
		`{"prompt_tokens":-5,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":-2}}`:                     {},
		`{"prompt_tokens":99999999999999999999999,"prompt_tokens_details":{"cached_tokens":9223372036854775807}}`:      {CacheRead: most},
		`{"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":9223372036854775807}}`:                 {Output: most, Reasoning: most},
		`{"prompt_tokens":2.5,"completion_tokens":"many","prompt_cache_hit_tokens":null,"total_tokens":[{"a":[1,2]}]}`: {Input: 2},
	} {
		t.Run("runtime/M02 "+usage[:30], func(t *testing.T) {
			data := []string{finish("stop"), `{"usage":` + usage + `}`}
			reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, stream(data...)), request(user("hi")))
			if err != nil || reply.Usage == nil || *reply.Usage != want {
				t.Errorf("usage %+v, error %v; want %+v", reply.Usage, err, want)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	for name, c := range map[string]struct{ args, want string }{
		"48 deep":               {nested(48), nested(48)},
		"49 deep":               {nested(49), strconv.Quote(nested(49))},
		"20000 deep":            {nested(20_000), strconv.Quote(nested(20_000))},
		"open brackets":         {strings.Repeat("[", 100_000), strconv.Quote(strings.Repeat("[", 100_000))},
		"no JSON":               {"not json", `"not json"`},
		"cut off":               {`{"a":"b`, `"{\"a\":\"b"`},
		"two":                   {`{}{}`, `"{}{}"`},
		"none":                  {" ", "{}"},
		"null":                  {"null", "{}"},
		"no object":             {`[1]`, `[1]`},
		"brackets in a string":  {`{"a":"\"` + strings.Repeat("[", 100) + `"}`, `{"a":"\"` + strings.Repeat("[", 100) + `"}`},
		"brackets side by side": {`[` + strings.Repeat("[],", 100) + `1]`, `[` + strings.Repeat("[],", 100) + `1]`},
	} {
		t.Run("runtime/M02 "+name, func(t *testing.T) {
			reply, err := ask(t.Context(), serve(t, chatcompletions.Config{}, stream(callOf(0, c.args), finish("tool_calls"))), request(user("hi")))
			if err != nil || len(reply.Parts) != 1 || string(reply.Parts[0].Call.Args) != c.want {
				t.Errorf("%d parts, error %v; want one call with %.60s", len(reply.Parts), err, c.want)
			}
			if again := provider.Arguments(reply.Parts[0].Call.Args); string(again) != c.want {
				t.Errorf("read again they are %.60s, want %.60s", again, c.want)
			}
		})
	}
}

// TestServersThatKeepTalking has servers that never let the connection be silent.
func TestServersThatKeepTalking(t *testing.T) {
	every := func(pause time.Duration, line string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // only then does the server see that the client left
			stream(textDelta("content", "a"))(w, r)
			for {
				io.WriteString(w, line)
				http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(pause):
				}
			}
		}
	}
	for _, c := range []struct {
		name, line, code string
		after            time.Duration
	}{
		{"a comment is a sign of life while a model thinks, but not for ever", ": wait\n\n", "attempt_timeout", 30 * time.Minute},
		{"an answer has its time", "data: {}\n\n", "attempt_timeout", 30 * time.Minute},
	} {
		t.Run("runtime/M02 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				reply, err := ask(t.Context(), servePipe(t, every(50*time.Second, c.line)), request(user("hi")))
				if codeOf(err) != c.code || err.Kind != provider.KindTimeout || size(&reply) != 1 {
					t.Errorf("error %+v with %d bytes, want %s with 1", err, size(&reply), c.code)
				}
				if took := time.Since(begin); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
			})
		})
	}
}
