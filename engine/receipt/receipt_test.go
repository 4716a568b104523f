package receipt

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// params and answer belong to a test method.
type params struct {
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	Text           string `json:"text"`
}

type answer struct {
	protocol.Replayable
	N int `json:"n"`
}

// open returns a store that runs until the test ends.
func open(t *testing.T) *persistence.Store {
	t.Helper()
	s, err := persistence.Open(t.Context(), persistence.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// commit stores the receipt of a request with its answer.
func commit(t *testing.T, s *persistence.Store, rc *persistence.Receipt) error {
	t.Helper()
	_, err := s.Commit(t.Context(), &persistence.Commit{Receipt: rc, AtMs: 1})
	return err
}

func request(t *testing.T, method, key, text string) Request {
	t.Helper()
	rc, err := For(method, key, params{key, text})
	if err != nil {
		t.Fatal(err)
	}
	return rc
}

func TestHashCoversMethodAndParamsWithoutTheKey(t *testing.T) {
	first := string(request(t, "turn/start", "k", "hi").Hash)
	if got := string(request(t, "turn/start", "other", "hi").Hash); got != first {
		t.Error("the hash depends on the key")
	}
	if got := string(request(t, "turn/start", "k", "hello").Hash); got == first {
		t.Error("the hash does not depend on the params")
	}
	if got := string(request(t, "turn/steer", "k", "hi").Hash); got == first {
		t.Error("the hash does not depend on the method")
	}
	if _, err := For("turn/start", "a\nb", params{}); !errors.As(err, new(*param.Error)) {
		t.Errorf("a key with a line break: %v, want a *param.Error", err)
	}
	if rc := request(t, "turn/start", "", "hi"); rc.Key != "" || rc.Hash != nil || rc.With(answer{N: 1}) != nil {
		t.Errorf("without a key there is the request %+v", rc)
	}
}

func TestRepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	s, rc := open(t), request(t, "m", "k", "hi")
	if got, hit, err := Find[answer](t.Context(), s, rc); got != nil || hit || err != nil {
		t.Errorf("before: %+v, %v, %v; want none", got, hit, err)
	}
	if err := commit(t, s, rc.With(answer{N: 7})); err != nil {
		t.Fatal(err)
	}
	got, hit, err := Find[answer](t.Context(), s, rc)
	if err != nil || !hit || got.N != 7 || !got.Duplicate {
		t.Errorf("got %+v, %v, %v; want 7 as a duplicate", got, hit, err)
	}
	if _, _, err := Find[answer](t.Context(), s, request(t, "m", "k", "hello")); !errors.Is(err, persistence.ErrReceiptConflict) {
		t.Errorf("another request with the key: %v, want %v", err, persistence.ErrReceiptConflict)
	}
	if got, err := First(t.Context(), s, rc, &answer{N: 8}, ErrReplayed); err != nil || got.N != 7 {
		t.Errorf("after ErrReplayed: %+v, %v; want 7", got, err)
	}
	if got, err := First(t.Context(), s, rc, &answer{N: 8}, nil); err != nil || got.N != 8 || got.Duplicate {
		t.Errorf("without an error: %+v, %v; want 8", got, err)
	}
}

func TestRefusedRequestGetsTheAnswerFromBefore(t *testing.T) {
	s, refused := open(t), errors.New("no such session")
	if _, err := Repeated[answer](t.Context(), s, "m", "k", params{"k", "hi"}, refused); err != refused {
		t.Errorf("got %v, want %v", err, refused)
	}
	if err := commit(t, s, request(t, "m", "k", "hi").With(answer{N: 7})); err != nil {
		t.Fatal(err)
	}
	if got, err := Repeated[answer](t.Context(), s, "m", "k", params{"k", "hi"}, refused); err != nil || got.N != 7 || !got.Duplicate {
		t.Errorf("got %+v, %v; want 7 as a duplicate", got, err)
	}
}

func TestBegunRequestIsNotRunAgain(t *testing.T) {
	s, rc := open(t), request(t, "m", "k", "hi")
	if err := commit(t, s, rc.Begun()); err != nil {
		t.Fatal(err)
	}
	got, err := Once(t.Context(), NewFlights(s), "m", "k", params{"k", "hi"}, func(Request) (*answer, error) {
		t.Error("it is run again")
		return &answer{}, nil
	})
	if got != nil || !errors.Is(err, ErrBegun) {
		t.Errorf("got %+v, %v; want %v", got, err, ErrBegun)
	}
	if err := commit(t, s, rc.With(answer{N: 7})); err != nil {
		t.Fatal(err)
	}
	if got, _, err := Find[answer](t.Context(), s, rc); err != nil || got.N != 7 {
		t.Errorf("once it has an answer: %+v, %v; want 7", got, err)
	}
}

func TestRepetitionWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		fl := NewFlights(s)
		runs := 0
		slow := func(rc Request) (*answer, error) {
			runs++
			time.Sleep(time.Minute)
			return &answer{N: 7}, commit(t, s, rc.With(answer{N: 7}))
		}
		go Once(t.Context(), fl, "m", "k", params{"k", "hi"}, slow)
		synctest.Wait()
		began := time.Now()
		if _, err := Once(t.Context(), fl, "m", "k", params{"k", "hello"}, slow); !errors.Is(err, persistence.ErrReceiptConflict) || time.Since(began) > 0 {
			t.Errorf("another request with the key: %v after %v, want %v at once", err, time.Since(began), persistence.ErrReceiptConflict)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Once(ctx, fl, "m", "k", params{"k", "hi"}, slow); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a repetition that waits for a second: %v, want %v", err, context.DeadlineExceeded)
		}
		got, err := Once(t.Context(), fl, "m", "k", params{"k", "hi"}, slow)
		if err != nil || got.N != 7 || !got.Duplicate || time.Since(began) != time.Minute || runs != 1 {
			t.Errorf("got %+v, %v after %v and %d runs; want 7 as a duplicate after 1m and 1 run", got, err, time.Since(began), runs)
		}
	})
}

func TestFailureIsNoAnswer(t *testing.T) {
	fl, why := NewFlights(open(t)), errors.New("no")
	runs := 0
	for range 2 {
		_, err := Once(t.Context(), fl, "m", "k", params{"k", "hi"}, func(Request) (*answer, error) { runs++; return &answer{N: 1}, why })
		if err != why {
			t.Errorf("got %v, want %v", err, why)
		}
	}
	if runs != 2 {
		t.Errorf("%d runs, want 2", runs)
	}
}
