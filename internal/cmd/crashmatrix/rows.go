package main

import "slices"

// rows are the whole matrix.
func rows() []row {
	return slices.Concat(
		killRows("kill", false),
		deleteRows(),
		resumeRows(),
		killRows("kill, no idempotency", true),
		faultRows(),
		workerRows(),
		pauseRows(),
		clockRows(),
	)
}
