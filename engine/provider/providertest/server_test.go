package providertest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/rpc/protocol"
)

// TestKeyGoesToItsServerOnly looks where a key is sent and where it is not.
func TestKeyGoesToItsServerOnly(t *testing.T) {
	const key = "sk-canary-0123456789"
	over(t, func(t *testing.T, d *dialect) {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("runtime/M02 another host got %s %s with %v", r.Method, r.URL, r.Header)
		}))
		defer other.Close()
		p := d.serve(t, endpoint.Config{Key: provider.NewSecret(key)}, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get(d.header); got != key && got != "Bearer "+key || r.URL.Path != "/v1"+d.path {
				t.Errorf("runtime/M02 %s with %s %q, want %s with the key", r.URL.Path, d.header, got, d.path)
			}
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
		_, err := ask(t.Context(), t, p, providertest.Request())
		if codeOf(err) != "redirected" || err.Retryable || err.Kind != provider.KindHTTP || !strings.Contains(err.Message, "change the base URL") {
			t.Errorf("runtime/M02 error %+v, want redirected, terminal, with advice", err)
		}
	})
}

// TestLargeRejection has a server reject a request with 64 MiB. It must see that the client stops reading.
func TestLargeRejection(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		sent := make(chan int64, 1)
		p := d.serve(t, endpoint.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			n, _ := io.Copy(w, io.LimitReader(endless("<p>no</p>"), 64<<20)) // fails when the client leaves
			sent <- n
		})
		_, err := ask(t.Context(), t, p, providertest.Request())
		if codeOf(err) != "bad_gateway" || !err.Retryable || len(err.Raw) > 4_000 || len(err.Message) > 1_000 {
			t.Errorf("runtime/M02 error %.200s with an excerpt of %d bytes, want bad_gateway with 4000 at most", err, len(err.Raw))
		}
		if n := <-sent; n >= 64<<20 {
			t.Errorf("runtime/M02 all of %d bytes were read", n)
		}
	})
}

// endless reads as a text again and again.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestEndlessReplies has servers that do not stop by themselves: each must see that the client left.
func TestEndlessReplies(t *testing.T) {
	piece := strings.Repeat("x", 10_000)
	for _, c := range []struct {
		name, code string
		event      func(d *dialect, i int) string
	}{
		{"text", "reply_too_long", func(d *dialect, _ int) string { return d.delta(piece) }},
		{"calls", "too_many_calls", func(d *dialect, i int) string { return d.call(i) }},
		{"a line", "reply_too_long", func(*dialect, int) string { return `data: {"x":"` + strings.Repeat("x", 5<<20) }},
	} {
		t.Run("runtime/M02 "+c.name, func(t *testing.T) {
			over(t, func(t *testing.T, d *dialect) {
				left := make(chan struct{})
				p := d.serve(t, endpoint.Config{}, func(w http.ResponseWriter, r *http.Request) {
					defer close(left)
					fmt.Fprint(w, d.begin)
					for i := 0; r.Context().Err() == nil; i++ {
						io.WriteString(w, c.event(d, i)) // fails when the client leaves
					}
				})
				reply, err := ask(t.Context(), t, p, providertest.Request())
				<-left
				if codeOf(err) != c.code || err.Retryable || len(text(&reply)) > 3<<19 {
					t.Errorf("error %+v with %d bytes kept, want %s, terminal, with 1.5 MiB at most", err, len(text(&reply)), c.code)
				}
			})
		})
	}
}

// TestSilence waits in virtual time.
func TestSilence(t *testing.T) {
	stall := func(after string) func(d *dialect) http.HandlerFunc {
		return func(d *dialect) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) // otherwise the server does not see that the client leaves
				if after != "" {
					respond(w, r, d.recorded(t, after), func(body []byte) { flushed(w, string(body)) })
				}
				<-r.Context().Done()
			}
		}
	}
	comments := func(d *dialect) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				flushed(w, ": wait\n\n")
				select {
				case <-r.Context().Done():
				case <-time.After(50 * time.Second):
				}
			}
		}
	}
	for _, c := range []struct {
		name, code string
		handler    func(d *dialect) http.HandlerFunc
		after      time.Duration
		kept       string
		retryable  bool
	}{
		{"no answer", "request_timeout", stall(""), 300 * time.Second, "", true},
		{"silence after some text", "chunk_timeout", stall("eof"), 120 * time.Second, "Hel", true},
		{"comments alone are life, but not for ever", "attempt_timeout", comments, 30 * time.Minute, "", false},
	} {
		t.Run("runtime/M02 "+c.name, func(t *testing.T) {
			over(t, func(t *testing.T, d *dialect) {
				synctest.Test(t, func(t *testing.T) {
					begin := time.Now()
					reply, err := ask(t.Context(), t, d.servePipe(t, c.handler(d)), providertest.Request())
					if codeOf(err) != c.code || err.Kind != provider.KindTimeout || err.Retryable != c.retryable || text(&reply) != c.kept {
						t.Errorf("error %+v after %q, want %s after %q", err, text(&reply), c.code, c.kept)
					}
					if took := time.Since(begin); took != c.after {
						t.Errorf("it took %v, want %v", took, c.after)
					}
				})
			})
		})
	}
}

// TestSlowReply has every byte come alone, with a wait before each.
func TestSlowReply(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		for _, answer := range []string{"text", "calls"} {
			want, err := ask(t.Context(), t, d.serve(t, endpoint.Config{}, replay(d.recorded(t, answer))), providertest.Request())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				p := d.servePipe(t, func(w http.ResponseWriter, r *http.Request) {
					respond(w, r, d.recorded(t, answer), func(body []byte) {
						for i := range body {
							select {
							case <-r.Context().Done():
								return
							case <-time.After(50 * time.Millisecond):
								flushed(w, string(body[i:i+1]))
							}
						}
					})
				})
				got, err := ask(t.Context(), t, p, providertest.Request())
				if err != nil || len(got.Parts) != len(want.Parts) || text(&got) != text(&want) || got.Stop != want.Stop {
					t.Errorf("runtime/M01 reply %+v, error %v; want %+v", got, err, want)
				}
			})
		}
	})
}

// TestCancel leaves a stream in the middle and asks for the cause.
func TestCancel(t *testing.T) {
	over(t, func(t *testing.T, d *dialect) {
		gone := errors.New("the user pressed Escape")
		p := d.serve(t, endpoint.Config{}, func(w http.ResponseWriter, r *http.Request) {
			respond(w, r, d.recorded(t, "eof"), func(body []byte) { flushed(w, string(body)) })
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var end error
		for chunk, err := range p.Stream(ctx, providertest.Request()) {
			if chunk.Text != "" {
				cancel(gone)
			}
			end = err
		}
		failure, _ := errors.AsType[*provider.Error](end)
		if codeOf(failure) != "cancelled" || failure.Stop != protocol.StopCancelled || failure.Retryable || !errors.Is(end, gone) {
			t.Errorf("runtime/M01 error %+v, want cancelled because of %v", end, gone)
		}
	})
}
