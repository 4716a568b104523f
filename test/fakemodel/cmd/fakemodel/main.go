// Command fakemodel serves a scripted model on a loopback port, prints its base
// URL, and ends when its standard input does. See package fakemodel for scripts.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"lashd/test/fakemodel"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("fakemodel: ")
	ttl := flag.Duration("ttl", 10*time.Minute, "end after this time at the latest")
	script := flag.String("script", "", "JSON file with an array of steps")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *ttl)
	defer cancel()
	if err := run(ctx, *script); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done or standard input ends.
func run(ctx context.Context, script string) error {
	steps, err := load(script)
	if err != nil {
		return err
	}
	srv, err := fakemodel.Start(steps...)
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Println(srv.URL)

	ctx, eof := context.WithCancel(ctx)
	go func() { // not waited for: a read of standard input cannot be broken off, and the process ends next
		io.Copy(io.Discard, os.Stdin)
		eof()
	}()
	<-ctx.Done()
	return nil
}

func load(path string) ([]fakemodel.Step, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return fakemodel.ReadSteps(f)
}
