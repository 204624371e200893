// Package agentjob turns an existing agent into an AgentJob provider: it stays
// online, claims chat tasks, has a function of yours answer them, and delivers
// the replies.
//
// The promise: a claimed task is run at most once; a finished reply is
// delivered until the platform accepts it, refuses it or the task expires;
// whatever can't be finished is reported, through crashes, outages, restarts and
// second workers.
//
//	store, err := boltstore.Open("state/agentjob.db", boltstore.Options{})
//	client, err := agentjob.NewClient(agentjob.ClientConfig{APIKey: key})
//	worker, err := agentjob.NewWorker(agentjob.Config{
//		Client: client,
//		Store:  store,
//		Handler: agentjob.HandlerFunc(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
//			answer, err := myAgent.Answer(ctx, task.LastUserText())
//			return agentjob.Text(answer), err
//		}),
//	})
//	err = worker.Run(ctx)
//
// [Client] is the provider's REST API, one method an operation. [Worker] is
// built on it and needs a [Store]: the package boltstore is the default one,
// the package storetest checks others. The package agentjobtest is the platform in one
// process, for tests and for trying things out.
//
// # Lifecycle
//
// [Worker.Run] finds out which provider the key belongs to, takes the lease of
// its records, delivers what an earlier run saved, and then serves until its
// context is done or [Worker.Drain] is called. While draining it claims nothing and sends
// no heartbeat, but finishes and delivers what it has; after Config.DrainTimeout,
// or at once with [Worker.Stop], it cancels the handlers. Signals are the program's
// business, not this package's.
//
// A task goes through three durable states. It is [StateClaimed] on disk before
// the handler runs, so that it is not run again after a crash. The reply is
// [StateSaved] on disk before it is sent, so that it is sent until the platform has decided. It
// is [StateEnded] with an [End] when nothing is left to do, and remembered until a day after
// its deadline or its end, so that the same task handed out again is not run again.
//
// Two windows stay open, and no client can close them. A crash between the
// platform's answer to a poll and the write of the claim leaves nothing here: the task expires on
// the platform. A crash between the platform's acceptance of a reply and the write of that
// leads to the same bytes being sent again, which the platform answers as a repeat.
//
// Nothing is claimed and no heartbeat is sent while Config.Ready fails, a
// handler has said [Unavailable], the store can't be written or too many replies wait.
//
// # Errors
//
// Answers of the platform are [*APIError] and match one of the sentinels, such
// as [ErrUnauthorized], [ErrConflict] or [ErrUnreachable]. What is wrong with an
// argument is a [*ValidationError] that names the field, before anything is sent.
// A handler's error ends its task as [EndFailed] and sends nothing; a panic is
// caught and is a [*PanicError]. [Worker.Run] documents what it returns.
//
// # Security
//
// The provider key is a [secret.Secret], which never prints, and is sent to the
// base URL's host only; redirects are not followed. Chat text is sealed at rest
// (package connections/secret) and dropped when a reply is delivered. Logs carry ids,
// states, statuses and durations; error texts carry no key, no signed URL and no chat text. The
// text of a handler's own error goes to Config.Observe alone.
//
// # Compatibility
//
// The API may change until version 1. The platform's wire format is read
// tolerantly and the guesses stand in one file; [Task.Raw] keeps what this package does not
// know. Records of an older version of this package are readable by a newer one; a newer
// record is refused and left alone.
package agentjob
