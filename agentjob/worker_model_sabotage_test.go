package agentjob_test

import (
	"net/http"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
)

// A sabotage breaks a promise behind the model's back. Its zero value leaves the worker as it is.
type sabotage struct {
	config      func(*agentjob.Config)                    // what the worker gets
	transport   func(http.RoundTripper) http.RoundTripper // between the worker and what the model sees
	platform    func(*agentjobtest.Settings)
	neverDrains bool
}
