package chatcompletions_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
)

// statusLine answers with a line that is no HTTP.
func statusLine(line string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprintf(buffered, "%s\r\n\r\n", line)
		buffered.Flush() // the client may have left
	}
}

// TestKeyDoesNotComeBack lets a server say the key in each place of an answer and in each spelling.
func TestKeyDoesNotComeBack(t *testing.T) {
	const key = "sk-Very/Secret+k3y"
	escaped := regexp.MustCompile(`.`).ReplaceAllStringFunc(key, func(c string) string { return fmt.Sprintf(`\u%04X`, c[0]) })
	percent := strings.NewReplacer("/", "%2F", "+", "%2b").Replace(key)
	encoded := base64.StdEncoding.EncodeToString([]byte("a user:" + key))
	header := base64.URLEncoding.EncodeToString([]byte(key))
	for _, c := range []struct {
		place, spelling string
		h               http.HandlerFunc
		code            string
	}{
		{"code", key, answer(400, `{"error":{"message":"no","code":"`+key+`"}}`), "bad_request"},
		{"type", key, answer(400, `{"error":{"message":"no","type":"`+key+`"}}`), "bad_request"},
		{"code of words", "not a word", answer(400, `{"error":{"message":"no","code":"not a word","type":"stable"}}`), "stable"},
		{"code in the stream", key, stream(`{"error":{"message":"no","code":"` + key + `"}}`), "server_error"},
		{"status line", key, statusLine("HTTP/1.1 " + key + " no"), "connect_failed"},
		{"no HTTP", key, statusLine(key), "connect_failed"},
		{"location", key, answer(307, "", "Location", "http://other.test/"+key+"/x"), "redirected"},
		{"location", percent, answer(307, "", "Location", "http://other.test/"+percent+"/x"), "redirected"},
		{"message", escaped, answer(401, `{"error":{"message":"bad key `+escaped+`"}}`), "unauthorized"},
		{"message", `sk-Very\/Secret+k3y`, answer(401, `{"error":"bad key sk-Very\/Secret+k3y"}`), "unauthorized"},
		{"message", percent, answer(401, `{"error":"bad key `+percent+`"}`), "unauthorized"},
		{"message", encoded[12:20], answer(401, "bad "+encoded), "unauthorized"},
		{"message", header[:20], answer(401, "bad "+header), "unauthorized"},
		{"where a message is cut", key[:9], answer(401, strings.Repeat("x", 190)+key), "unauthorized"},
		{"where a body is cut", key[:9], answer(500, strings.Repeat("x\n", 32<<10-5)+key), "internal_server_error"},
		{"a chunk", escaped, stream(`{"` + escaped + `":`), "malformed_answer"},
	} {
		t.Run("runtime/M02 "+c.place+" "+c.spelling[:6], func(t *testing.T) {
			p := serve(t, chatcompletions.Config{Config: endpoint.Config{Key: provider.NewSecret(key)}}, c.h)
			_, err := ask(t.Context(), p, request(user("hi")))
			if codeOf(err) != c.code {
				t.Errorf("error %v, want %s", err, c.code)
			}
			issue, _ := json.Marshal(err.Issue()) // of texts
			shown := strings.ReplaceAll(fmt.Sprintf("%v\n%+v\n%#v\n%v\n%s", err, *err, *err, err.Err, issue), `\\`, `\`)
			if c.place == "code of words" {
				shown = err.Code
			}
			if strings.Contains(shown, c.spelling) || strings.Contains(shown, key) {
				t.Errorf("%q shows in %s", c.spelling, shown)
			}
		})
	}
}

func TestOtherKeysDoNotComeBack(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "no %s with %v", r.URL, r.Header)
	}
	cfg := chatcompletions.Config{Config: endpoint.Config{
		BaseURL: "?api-key=query-secret&api-version=2024-10-21",
		Headers: map[string]provider.Secret{"Proxy-Authorization": provider.NewSecret("Bearer header-secret")},
	}}
	_, err := ask(t.Context(), serve(t, cfg, echo), request(user("hi")))
	if text := fmt.Sprint(err); strings.Contains(text, "-secret") || !strings.Contains(text, "2024-10-21") {
		t.Errorf("runtime/M02: error %v, want it with the version and without secrets", err)
	}
	_, err = ask(t.Context(), chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: "http://user:p-secret/x@host/%zz"}}), request(user("hi")))
	if text := fmt.Sprint(err); strings.Contains(text, "secret") {
		t.Errorf("runtime/M02: error %v shows a password", err)
	}
	long := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[`+strings.Repeat(" ", 5<<20))
	}
	_, err = ask(t.Context(), serve(t, chatcompletions.Config{}, long), request(user("hi")))
	if text := fmt.Sprint(err); !strings.Contains(text, "reply_too_long") {
		t.Errorf("runtime/M02: error %v of an endless answer, want reply_too_long", err)
	}
}
