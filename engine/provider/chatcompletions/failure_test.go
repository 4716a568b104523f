package chatcompletions_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

func TestRefusals(t *testing.T) {
	type want struct {
		kind      provider.ErrorKind
		code      string
		retryable bool
		throttled bool
		stop      protocol.StopReason
	}
	http5 := func(code string) want { return want{provider.KindHTTP, code, true, false, ""} }
	overflow := want{provider.KindValidation, "context_length_exceeded", false, false, protocol.StopContextLimit}
	for _, c := range []struct {
		status int
		body   string
		want   want
	}{
		{400, `{"error":{"message":"no","type":"invalid_request_error","code":"bad_tool"}}`, want{provider.KindValidation, "bad_tool", false, false, ""}},
		{400, `{"error":{"message":"no","code":"context_length_exceeded"}}`, overflow},
		{400, `{"error":{"message":"no","type":"exceed_context_size_error","code":400}}`, overflow},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}`, overflow},
		{400, `{"error":{"message":"no","code":"content_filter"}}`, want{provider.KindValidation, "content_filter", false, false, protocol.StopContentFilter}},
		{401, `{"error":{"message":"no","code":"invalid_api_key"}}`, want{provider.KindAuth, "invalid_api_key", false, false, ""}},
		{402, `{"error":{"message":"pay","code":402}}`, want{provider.KindQuota, "payment_required", false, false, ""}},
		{403, ``, want{provider.KindAuth, "forbidden", false, false, ""}},
		{404, `{"error":"model 'x' not found"}`, want{provider.KindValidation, "not_found", false, false, ""}},
		{408, ``, http5("request_timeout")},
		{409, ``, http5("conflict")},
		{425, ``, http5("too_early")},
		{429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, want{provider.KindQuota, "insufficient_quota", false, false, ""}},
		{429, `quota exceeded, try later`, want{provider.KindHTTP, "too_many_requests", true, true, ""}},
		{429, `[{"error":{"message":"quota","code":429,"status":"RESOURCE_EXHAUSTED"}}]`, want{provider.KindHTTP, "RESOURCE_EXHAUSTED", true, true, ""}},
		{500, `{"detail":"oh"}`, http5("internal_server_error")},
		{501, ``, want{provider.KindUnsupported, "not_implemented", false, false, ""}},
		{502, `<html>`, http5("bad_gateway")},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, http5("unavailable_error")},
		{504, ``, http5("gateway_timeout")},
	} {
		t.Run(fmt.Sprintf("runtime/M02 %d %s", c.status, c.want.code), func(t *testing.T) {
			_, err := ask(t.Context(), serve(t, chatcompletions.Config{}, answer(c.status, c.body)), request(user("hi")))
			if err == nil {
				t.Fatal("no error")
			}
			if got := (want{err.Kind, err.Code, err.Retryable, err.Throttled, err.Stop}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if err.Status != c.status || err.Raw != c.body || !strings.Contains(err.Error(), "/v1/chat/completions") {
				t.Errorf("status %d, raw %q, text %q; want %d, the body, the endpoint", err.Status, err.Raw, err, c.status)
			}
		})
	}
}

func TestRetryAfterHeader(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7":    7 * time.Second,
		"0.5":  500 * time.Millisecond,
		"-3":   0,
		"NaN":  0,
		"1e99": 24 * time.Hour,
		"soon": 0,
		time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat):  90 * time.Second,
		time.Now().Add(-90 * time.Second).UTC().Format(http.TimeFormat): 0,
	} {
		t.Run("runtime/M11 Retry-After "+value, func(t *testing.T) {
			_, err := ask(t.Context(), serve(t, chatcompletions.Config{}, answer(429, "", "Retry-After", value)), request(user("hi")))
			if d := err.RetryAfter - want; d < -3*time.Second || d > 0 {
				t.Errorf("RetryAfter %v, want %v", err.RetryAfter, want)
			}
		})
	}
}

func TestKeyStaysHome(t *testing.T) {
	const key, header = "sk-very-secret", "header-very-secret"
	cfg := chatcompletions.Config{Config: endpoint.Config{
		Key:     provider.NewSecret(key),
		Headers: map[string]provider.Secret{"Api-Key": provider.NewSecret(header)},
	}}
	t.Run("runtime/M02 the key is sent", func(t *testing.T) {
		p := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("Api-Key") != header {
				t.Errorf("headers %v, want both keys", r.Header)
			}
			stream(finish("stop"))(w, r)
		})
		if _, err := ask(t.Context(), p, request(user("hi"))); err != nil {
			t.Error(err)
		}
	})
	t.Run("runtime/M02 a redirect to another host is not followed", func(t *testing.T) {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("another host got %s %s with %v", r.Method, r.URL, r.Header)
		}))
		defer other.Close()
		p := serve(t, cfg, answer(307, "", "Location", other.URL+"/v1/chat/completions?token="+key))
		_, err := ask(t.Context(), p, request(user("hi")))
		if codeOf(err) != "redirected" || err.Retryable || strings.Contains(err.Error(), key) {
			t.Errorf("error %v, want redirected, terminal", err)
		}
	})
	t.Run("runtime/M02 a redirect within the host is followed", func(t *testing.T) {
		p := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/chat/completions" {
				http.Redirect(w, r, "/v2/chat", http.StatusPermanentRedirect)
				return
			}
			if body := read(t, r); !strings.Contains(body, "hello there") {
				t.Errorf("body %q lost on the way", body)
			}
			stream(finish("stop"))(w, r)
		})
		if _, err := ask(t.Context(), p, request(user("hello there"))); err != nil {
			t.Error(err)
		}
	})
	t.Run("runtime/M02 a server that repeats the key does not leak it", func(t *testing.T) {
		h := answer(401, `{"error":{"message":"bad key `+key+` or `+header+`"}}`)
		p := serve(t, cfg, h)
		_, err := ask(t.Context(), p, request(user("hi")))
		shown := fmt.Sprintf("%v %+v %#v %+v", err, *err, *err, p)
		if strings.Contains(shown, key) || strings.Contains(shown, header) {
			t.Errorf("a key shows in %s", shown)
		}
	})
}

func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	cfg := chatcompletions.Config{Config: endpoint.Config{BaseURL: srv.URL + "/v1?key=hidden", HTTPClient: &http.Client{Transport: &http.Transport{}}}}
	_, err := ask(t.Context(), chatcompletions.New(cfg), request(user("hi")))
	if codeOf(err) != "connect_failed" || err.Kind != provider.KindTransport || !err.Retryable || !err.Down || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %+v, want connect_failed without the query", err)
	}
	for _, base := range []string{"", "localhost:11434/v1", "http://", "http://%zz"} {
		if _, err := ask(t.Context(), chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: base}}), request(user("hi"))); codeOf(err) != "invalid_base_url" {
			t.Errorf("base URL %q: error %v, want invalid_base_url", base, err)
		}
	}
}

func TestKeys(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		answer(200, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)(w, r)
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		key        string
		need       bool
		sent, code string
	}{
		"white space around it is left out":   {" sk-abc\r\n", true, "Bearer sk-abc", ""},
		"a server of one's own may need none": {"", false, "", ""},
		"one that is needed is missed":        {" \n", true, "", "missing_key"},
		"one with a line end in it":           {"sk-abc\nsk-def", false, "", "invalid_key"},
	} {
		t.Run("issue/2 "+name, func(t *testing.T) {
			sent = ""
			p := chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: server.URL, Key: provider.NewSecret(c.key), KeyFrom: "the environment variable MY_KEY", NeedKey: c.need}})
			_, failure := ask(t.Context(), p, request(user("hi")))
			if sent != c.sent || codeOf(failure) != c.code {
				t.Errorf("sent %q, error %v; want %q, %q", sent, failure, c.sent, c.code)
			}
			if failure != nil && (failure.Retryable || failure.Kind != provider.KindAuth || !strings.Contains(failure.Message, "MY_KEY") || strings.Contains(failure.Message, "sk-")) {
				t.Errorf("error %+v", failure)
			}
		})
	}
}
