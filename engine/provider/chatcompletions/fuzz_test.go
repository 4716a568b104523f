package chatcompletions_test

import (
	"net/http"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/chatcompletions"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
)

func FuzzStream(f *testing.F) {
	providertest.FuzzStream(f, "chatcompletions", func(client *http.Client) provider.Provider {
		return chatcompletions.New(chatcompletions.Config{Config: endpoint.Config{BaseURL: "http://model.test", HTTPClient: client}})
	})
}
