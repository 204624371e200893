package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// shop is the agent: it keeps a shopping list, and its memory is the conversation
// that comes with every task, nothing else. It understands "add THING", "remove
// THING", and "think DURATION", for which it takes that long (a slow agent, to be
// killed at work); everything else asks for the list.
func shop(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	if verb, rest := command(task.LastUserText()); verb == "think" {
		if err := think(ctx, rest); err != nil {
			return nil, err
		}
	}
	list := shoppingList(task.Messages)
	if len(list) == 0 {
		return agentjob.Text("Your list is empty."), nil
	}
	return agentjob.Text(fmt.Sprintf("On your list (%d): %s.", len(list), strings.Join(list, ", "))), nil
}

// shoppingList is what the customer's messages amount to.
func shoppingList(messages []agentjob.Message) []string {
	var list []string
	for _, m := range messages {
		if m.Role != "user" {
			continue
		}
		switch verb, thing := command(m.Content); verb {
		case "add":
			list = append(list, thing)
		case "remove":
			for i, have := range list {
				if have == thing {
					list = append(list[:i:i], list[i+1:]...)
					break
				}
			}
		}
	}
	return list
}

// command splits a message into its first word, in lower case, and the rest.
func command(text string) (verb, rest string) {
	verb, rest, _ = strings.Cut(strings.TrimSpace(text), " ")
	return strings.ToLower(verb), strings.TrimSpace(rest)
}

func think(ctx context.Context, duration string) error {
	d, err := time.ParseDuration(duration)
	if err != nil {
		return nil // "think about it" is not for the clock
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
