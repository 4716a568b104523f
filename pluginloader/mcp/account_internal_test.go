package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRefusedRenewal(t *testing.T) {
	for body, ended := range map[string]bool{
		`{"error":"invalid_grant"}`: true, `{"error":"invalid_client"}`: true, `{"error":"invalid_request"}`: false, `the proxy is busy`: false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, body)
		}))
		a := &account{client: s.Client()}
		if _, err := a.refresh(t.Context(), &grants{Refresh: "r", TokenURL: s.URL}); err == nil || errors.Is(err, errEnded) != ended {
			t.Errorf("part13/6 a renewal that is answered with %s: %v, want the login to end: %v", body, err, ended)
		}
		s.Close()
	}
}

func TestRefusedAgain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"second","token_type":"Bearer"}`)
	}))
	defer s.Close()
	for renewed, want := range map[time.Duration]bool{0: false, -time.Hour: true} {
		a := &account{client: s.Client(), trial: "first", tried: time.Now().Add(renewed)}
		a.became(&grants{Access: "first", Refresh: "r", TokenURL: s.URL})
		if got, err := a.refused(t.Context(), "Bearer first"); got != want || err != nil {
			t.Errorf("part13/6 renewed tokens that are refused after %v are renewed again: %v, %v", -renewed, got, err)
		}
	}
}

func TestRenewedAfterLogout(t *testing.T) {
	a := new(account)
	if a.became(&grants{Access: "old"}); a.renewed(&grants{Access: "new"}).Access != "new" {
		t.Error("part13/6 a renewal has no effect")
	}
	if a.became(nil); a.renewed(&grants{Access: "newer"}) != nil || a.current() != nil {
		t.Error("part13/6 a renewal that ends after a logout logs in again")
	}
}
