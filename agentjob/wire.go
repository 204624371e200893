package agentjob

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/agentjob/agentjob-go/connections/secret"
	"github.com/agentjob/agentjob-go/internal/httpx"
	"github.com/agentjob/agentjob-go/wallet/usdc"
)

// This file holds every guess about the platform's answers. Its guide of 2026-11-09
// names the routes and most request fields but shows few answers. The sources behind
// a name, best first:
//
//	guide     the platform's provider guide of 2026-11-09
//	docs      older pages of the platform's API documentation
//	seen      answers that public programs have recorded
//	package   what the platform's npm package 0.2.1 reads
//	client    what other public clients guard against; nobody recorded it
//	sibling   the other case style, since the platform uses both
//
// Reading is tolerant, writing strict. Answers that carry chat text never appear in
// an error, so the errors here are fixed texts.

var (
	errNotJSON   = errors.New("the body is not JSON, or cut")
	errNotObject = errors.New("the body is no JSON object")
	errNotOK     = errors.New("the status is a success, the body says that it is none")
	errTaskID    = errors.New("there is a task without an id that could be answered")
	errOtherTask = errors.New("the answer is about another task")
	errNoAgent   = errors.New("there is neither an agent id nor a key")

	errOtherFile     = errors.New("the answer is about another file")
	errUploadURL     = errors.New("the file is not ready, and there is no https URL to upload it to")
	errUploadType    = errors.New("the file's type is neither told nor clear from its name")
	errNotReady      = fmt.Errorf("%w: the file is not ready", errNotOK)
	errNoWithdrawal  = errors.New("there is neither a withdrawal's id nor a transaction")
	errOtherTransfer = errors.New("the answer is about another withdrawal")
)

// Envelopes. Seen: {ok,data} (register); docs: {data} (heartbeat); client: the
// payload at the top (poll). A failure is {error} with a string (seen, with 401).

// An answerDoc is a JSON answer.
type answerDoc struct {
	raw  json.RawMessage
	top  fields // nil if it is no object
	data fields // nil if there is none or it is no object
}

func parseAnswer(body []byte) (answerDoc, error) {
	d := answerDoc{raw: bytes.TrimSpace(body)}
	if !json.Valid(d.raw) {
		return d, errNotJSON
	}
	d.top, _ = splitObject(d.raw)
	d.data = d.top.object("data")
	// Nobody has seen {ok:false} or a bare {error} under a 2xx; if one comes, it
	// can't mean success.
	ok := d.top.flag("ok")
	bareError := ok == nil && d.data == nil && !d.top.says("task") && d.top.says("error")
	if bareError || ok != nil && !*ok {
		return d, errNotOK
	}
	return d, nil
}

// payload is what the answer is about: data, or without it the top level.
func (d answerDoc) payload() fields {
	if d.data != nil {
		return d.data
	}
	return d.top
}

// errorText finds what a failure says. Seen and package: error is a string. Client:
// error.message, message.
func errorText(body []byte) string {
	top, ok := parseFields(body)
	if !ok {
		return ""
	}
	if text := top.str("error"); text != "" {
		return text
	}
	if text := top.object("error").str("message"); text != "" {
		return text
	}
	return top.str("message")
}

// isHTML reports a page. Seen: an unknown path below /api answers with the site's
// HTML page.
func isHTML(a *httpx.Answer) bool {
	switch mediaType(a) {
	case "text/html", "application/xhtml+xml":
		return true
	}
	body := bytes.TrimPrefix(a.Body, []byte("\uFEFF"))
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// mediaType is what an answer says it is, without parameters.
func mediaType(a *httpx.Answer) string {
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// meansJSON reports a body that is or was to be JSON.
func meansJSON(a *httpx.Answer) bool {
	body, kind := bytes.TrimSpace(a.Body), mediaType(a)
	return kind == "application/json" || strings.HasSuffix(kind, "+json") ||
		bytes.HasPrefix(body, []byte("{")) || bytes.HasPrefix(body, []byte("["))
}

// Task ids. Package: id in the task; client: task_id; guide: taskId, in words and in
// the adapter contract.
var taskIDNames = []string{"id", "task_id", "taskId"}

func readTaskID(f fields) string {
	id, _ := first(f, taskIDNames, func(raw json.RawMessage) (string, bool) {
		id, ok := readText(raw)
		return id, ok && usableTaskID(id)
	})
	return id
}

// decodePoll returns nil for "no task". Docs of the older tool: {task:null}; client:
// the same over HTTP; 204, an empty body, null and {} are what else could mean it. A
// task is {task} (client), maybe in an envelope, or the payload itself. What looks
// like a task and can't be answered is an error: read as "no task", it would be lost
// unseen.
func decodePoll(body []byte) (*Task, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	d, err := parseAnswer(body)
	switch {
	case err != nil:
		return nil, err
	case d.top == nil && vacant(d.raw):
		return nil, nil
	case d.top == nil:
		return nil, errNotObject
	}
	for _, layer := range []fields{d.data, d.top} {
		raw, has := layer.get("task")
		switch task, isObject := splitObject(raw); {
		case !has:
		case vacant(raw):
			return nil, nil
		case isObject:
			return decodeTask(raw, task)
		case readTaskID(layer) == "": // otherwise a task that has a field of this name
			return nil, errTaskID
		}
	}
	return decodeBareTask(d)
}

func decodeBareTask(d answerDoc) (*Task, error) {
	raw, payload := d.raw, d.top
	data, enveloped := d.top.get("data")
	if d.data != nil {
		raw, payload = data, d.data
	}
	vague := enveloped && d.data == nil // {data:null, id}: the id of the request, more likely
	switch {
	case readTaskID(payload) != "" && (!vague || resemblesTask(payload)):
		return decodeTask(raw, payload)
	case resemblesTask(payload) || !vague && payload.says("id"):
		return nil, errTaskID
	}
	if list := d.top.list("data"); len(list) > 0 {
		return nil, errTaskID
	}
	return nil, nil
}

// resemblesTask reports fields that only a task has.
func resemblesTask(f fields) bool {
	for _, name := range []string{"messages", "task_id", "taskId", "tasks", "chat_id", "chatId", "is_first_chat", "amount_usdc"} {
		if f.says(name) {
			return true
		}
	}
	return false
}

// decodeStoredTask reads Task.Raw again. Its Deadline is by the platform's clock.
func decodeStoredTask(raw json.RawMessage) (*Task, error) {
	f, ok := parseFields(raw)
	if !ok {
		return nil, errNotObject
	}
	return decodeTask(raw, f)
}

// decodeTask reads a task. Package: id, chat_id, messages, is_first_chat,
// amount_usdc; sibling: their camelCase. No source shows a deadline in it; the names
// are those of other platforms, next to the progress route's "deadline" (guide).
func decodeTask(raw json.RawMessage, f fields) (*Task, error) {
	t := &Task{
		ID:        readTaskID(f),
		ChatID:    f.text("chat_id", "chatId"),
		Messages:  decodeMessages(f),
		FirstChat: f.flag("is_first_chat", "isFirstChat"),
		Deadline:  f.moment(deadlineNames...),
		Raw:       raw,
	}
	if t.ID == "" {
		return nil, errTaskID
	}
	if amount, ok := first(f, []string{"amount_usdc", "amountUsdc"}, readAmount); ok {
		t.Amount = &amount
	}
	return t, nil
}

// decodeMessages reads the conversation. Client: a task without messages may have its
// text in prompt, content, text or body.
func decodeMessages(f fields) []Message {
	list := f.list("messages")
	if list == nil {
		if text := f.str("prompt", "content", "text", "body"); text != "" {
			return []Message{{Role: "user", Content: text}}
		}
	}
	if len(list) == 0 {
		return nil
	}
	messages := make([]Message, len(list))
	for i, raw := range list {
		messages[i] = decodeMessage(raw)
	}
	return messages
}

// decodeMessage reads a turn. Guide and package: role, content, attachments. Client:
// text for content. Other chat interfaces: content as parts. Anything else is left to
// Message.Raw.
func decodeMessage(raw json.RawMessage) Message {
	m := Message{Raw: raw}
	f, _ := splitObject(raw)
	m.Role = f.str("role")
	m.Content, _ = first(f, []string{"content", "text"}, readContent)
	for _, raw := range f.list("attachments") {
		if a, ok := splitObject(raw); ok {
			m.Attachments = append(m.Attachments, decodeAttachment(a))
		}
	}
	return m
}

func readContent(raw json.RawMessage) (string, bool) {
	if text, ok := readString(raw); ok {
		return text, true
	}
	parts, _ := splitArray(raw)
	var texts []string
	for _, raw := range parts {
		part, _ := splitObject(raw)
		if text := part.str("text"); text != "" && part.str("type") == "text" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}

// Guide: id, name, contentType, size, url; sibling and usual names beside
// contentType.
func decodeAttachment(f fields) Attachment {
	return Attachment{
		ID:          f.text("id"),
		Name:        f.str("name"),
		ContentType: f.str("contentType", "content_type", "mimeType", "mime_type"),
		Size:        f.size("size"),
		URL:         f.str("url"),
	}
}

// Guide: the progress answer has a deadline.
var deadlineNames = []string{"deadline", "deadline_at", "deadlineAt", "expires_at", "expiresAt"}

// Guide: cancelled and failed end a task, a completed response may be repeated. The
// spelling with one l is the other English one.
var (
	statusOver      = map[string]bool{"cancelled": true, "canceled": true, "failed": true}
	statusCompleted = map[string]bool{"completed": true, "complete": true}
)

func (s ProgressStatus) folded() string { return strings.ToLower(strings.TrimSpace(string(s))) }

// parseObject is parseAnswer for answers that must be an object.
func parseObject(body []byte) (answerDoc, error) {
	d, err := parseAnswer(body)
	if err == nil && d.top == nil {
		err = errNotObject
	}
	return d, err
}

// decodeProgress reads a task's progress. Guide: "status, deadline and current
// limits", of which only the first two words can be names. They may be inside of task
// or progress.
func decodeProgress(body []byte, taskID string) (*TaskProgress, error) {
	d, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	p := &TaskProgress{Raw: d.raw}
	for _, f := range []fields{d.payload(), d.payload().object("task"), d.payload().object("progress")} {
		if namesOther(f, taskID, "taskId", "task_id", "id") {
			return nil, errOtherTask
		}
		if p.Status == "" {
			p.Status = ProgressStatus(f.str("status"))
		}
		if p.Deadline.IsZero() {
			p.Deadline = f.moment(deadlineNames...)
		}
		if p.Limits == nil && f.says("limits") {
			p.Limits, _ = f.get("limits")
		}
	}
	return p, nil
}

// parseAcknowledgement reads an answer that may be empty or a word: no source shows
// what comes back for a response or a progress report, and one client sends
// heartbeats and reads nothing at all. Only a failure and JSON that is none are
// errors.
func parseAcknowledgement(a *httpx.Answer) (answerDoc, error) {
	d, err := parseAnswer(a.Body)
	if err == errNotJSON && (len(d.raw) == 0 || !meansJSON(a)) {
		return answerDoc{}, nil
	}
	return d, err
}

// decodeReceipt returns the answer to a response or a progress report, nil if it is
// no JSON. An id in it may be that of the new message (seen so in answers to posts):
// only a task's id can be the wrong one.
func decodeReceipt(a *httpx.Answer, taskID string) (json.RawMessage, error) {
	d, err := parseAcknowledgement(a)
	if err != nil {
		return nil, err
	}
	if namesOther(d.payload(), taskID, "taskId", "task_id") || namesOther(d.payload().object("task"), taskID, taskIDNames...) {
		return nil, errOtherTask
	}
	return d.raw, nil
}

// namesOther reports whether an object names another task than the one asked about.
func namesOther(f fields, asked string, fieldNames ...string) bool {
	id := f.text(fieldNames...)
	return id != "" && id != asked
}

// Docs: {data:{next_heartbeat_in_seconds:45}}. The platform's online window is two
// minutes, so only 5 to 60 seconds can be meant.
func decodeHeartbeat(a *httpx.Answer) (*HeartbeatResult, error) {
	d, err := parseAcknowledgement(a)
	if err != nil {
		return nil, err
	}
	r := &HeartbeatResult{Raw: d.raw}
	if s := d.payload().size("next_heartbeat_in_seconds", "nextHeartbeatInSeconds"); s != nil && *s >= 5 && *s <= 60 {
		r.Next = time.Duration(*s) * time.Second
	}
	return r, nil
}

// decodeProfile reads the agent. No source shows it; seen in the older tool for the
// same: agent_id, name, wallet_address; in register: agentId, walletAddress. The
// guide says that the chat URL is there, not how it is called.
func decodeProfile(body []byte) (*Profile, error) {
	d, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	p := &Profile{Raw: d.raw}
	for _, f := range []fields{d.payload(), d.payload().object("agent"), d.payload().object("profile")} {
		p.AgentID = cmp.Or(p.AgentID, f.text("agentId", "agent_id", "id"))
		p.Name = cmp.Or(p.Name, f.text("name", "agentName", "agent_name"))
		p.WalletAddress = cmp.Or(p.WalletAddress, f.str("walletAddress", "wallet_address"))
		p.ChatURL = cmp.Or(p.ChatURL, f.str("chatUrl", "chat_url", "chatURL", "url"))
	}
	return p, nil
}

// decodeRegistration fills in what the platform answered. Guide and seen: 201 with
// {ok, data:{agentId, walletAddress, walletType, apiKey, message}}; apiKey is null,
// or was seen not to be a usable string, when the agent exists. Client: the aliases.
func decodeRegistration(body []byte, r *registrationAnswer) error {
	d, err := parseAnswer(body)
	if err != nil {
		return err
	}
	f := d.payload()
	r.agentID = f.text("agentId", "agent_id", "id")
	r.walletAddress = f.str("walletAddress", "wallet_address")
	r.walletType = f.str("walletType", "wallet_type")
	r.message = f.str("message")
	r.apiKey = strings.TrimSpace(f.str("apiKey", "api_key"))
	if r.agentID == "" && r.apiKey == "" {
		return errNoAgent
	}
	return nil
}

// nested gives an object and those of its objects that may hold what it is about.
func nested(f fields, names ...string) []fields {
	layers := []fields{f}
	for _, name := range names {
		if inner := f.object(name); inner != nil {
			layers = append(layers, inner)
		}
	}
	return layers
}

// firstOf returns the first value that read finds in the layers, nil if there is none.
func firstOf[T any](layers []fields, read func(fields) *T) *T {
	for _, f := range layers {
		if value := read(f); value != nil {
			return value
		}
	}
	return nil
}

func (f fields) amount(names ...string) *usdc.Amount {
	if value, ok := first(f, names, readAmount); ok {
		return &value
	}
	return nil
}

// decodeOverview reads a provider's numbers. Guide: what they are, in words; their names are
// guesses after those words and the profile's (seen: wallet_balance:{usdc,usdc_raw}). Amounts may be
// objects with an amount, counts objects with a count.
func decodeOverview(body []byte) (*Overview, error) {
	d, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	layers := nested(d.payload(), "overview", "wallet", "stats", "week", "thisWeek", "this_week")
	o := &Overview{Raw: d.raw}
	for _, f := range layers {
		o.WalletAddress = cmp.Or(o.WalletAddress, f.str("walletAddress", "wallet_address", "address"))
		if o.WeekStart.IsZero() {
			o.WeekStart = f.moment("weekStart", "week_start", "weekStartsAt", "weekStartAt")
		}
	}
	o.Balance = firstOf(layers, func(f fields) *usdc.Amount { return overviewAmount(f, balanceNames, balanceNames) })
	o.InquiringAccounts = firstOf(layers, func(f fields) *int64 { return overviewCount(f, accountNames) })
	o.Conversations = firstOf(layers, func(f fields) *int64 { return overviewCount(f, conversationNames) })
	o.ReceiptsThisWeek = firstOf(layers, func(f fields) *usdc.Amount { return overviewAmount(f, receiptNames, receiptObjects) })
	o.ReceiptCount = firstOf(layers, func(f fields) *int64 {
		if n := f.size("receiptCount", "receipt_count", "receiptsCount", "receipts_count", "weeklyReceiptCount", "weekly_receipt_count"); n != nil {
			return n
		}
		return f.object(receiptObjects...).size("count", "payments", "total_count")
	})
	if o.WeekStart.IsZero() {
		for _, f := range layers {
			if at := f.object(receiptObjects...).moment("weekStart", "week_start", "since", "from"); !at.IsZero() {
				o.WeekStart = at
				break
			}
		}
	}
	return o, nil
}

var (
	balanceNames = []string{
		"usdcBalance", "usdc_balance", "balanceUsdc", "balance_usdc", "baseUsdcBalance", "base_usdc_balance",
		"walletBalance", "wallet_balance", "balance",
	}
	accountNames = []string{
		"inquiringAccounts", "inquiring_accounts", "distinctInquiringAccounts", "distinct_inquiring_accounts",
		"inquiringUsers", "inquiring_users", "distinctAccounts", "distinct_accounts", "accounts",
	}
	conversationNames = []string{"conversations", "conversationsWithMessages", "conversations_with_messages", "conversationCount", "conversation_count"}
	receiptNames      = []string{
		"receiptsThisWeek", "receipts_this_week", "weeklyReceipts", "weekly_receipts", "weekReceipts", "week_receipts",
		"thisWeekReceipts", "this_week_receipts",
	}
	// receiptObjects may hold an amount and a count. A number of this name could be either.
	receiptObjects = append(receiptNames[:len(receiptNames):len(receiptNames)], "receipts")
)

// overviewAmount reads an amount, or one in an object. usdc_raw (seen) is in micro-USDC.
func overviewAmount(f fields, names, objects []string) *usdc.Amount {
	if amount := f.amount(names...); amount != nil {
		return amount
	}
	inner := f.object(objects...)
	if micro := inner.size("usdc_raw", "usdcRaw"); micro != nil {
		return new(usdc.Amount(*micro))
	}
	return inner.amount("usdc", "amount", "amountUsdc", "amount_usdc", "totalUsdc", "total_usdc", "total", "sum")
}

// overviewCount reads a number, or one in an object.
func overviewCount(f fields, names []string) *int64 {
	if n := f.size(names...); n != nil {
		return n
	}
	return f.object(names...).size("count", "total", "distinct")
}

// decodeQuota reads the registration quota. Guide: enabled, date, used, limit, remaining. That an
// admin's session is a cookie is what websites do; the guide only says "signed-in Admins".
func decodeQuota(body []byte) (*RegistrationQuota, error) {
	d, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	q := &RegistrationQuota{Raw: d.raw}
	layers := nested(d.payload(), "quota")
	for _, f := range layers {
		q.Date = cmp.Or(q.Date, f.text("date"))
	}
	q.Enabled = firstOf(layers, func(f fields) *bool { return f.flag("enabled") })
	q.Used = firstOf(layers, func(f fields) *int64 { return f.size("used") })
	q.Limit = firstOf(layers, func(f fields) *int64 { return f.size("limit") })
	q.Remaining = firstOf(layers, func(f fields) *int64 { return f.size("remaining") })
	return q, nil
}

// decodeReservation reads a place for a file. Guide: attachment, ready and, if needed,
// uploadUrl; the upload must carry "the exact returned Content-Type and Content-Length", of which
// it does not say where they stand. In an incoming attachment they are contentType and size.
func decodeReservation(body []byte, taskID string, r FileReservation) (*ReservedFile, error) {
	d, err := parseObject(body)
	if err != nil {
		return nil, err
	}
	p := d.payload()
	raw, file := fileObject(d)
	f := &ReservedFile{Attachment: decodeGenerated(raw, file), Raw: secret.New(string(d.raw)), taskID: taskID, size: r.Size}
	upload := p.object("upload")
	if other := f.Attachment.ID; other != "" && !strings.EqualFold(other, r.ID) || namesOther(p, taskID, "taskId", "task_id") {
		return nil, errOtherFile
	}
	for _, size := range []*int64{f.Attachment.Size, p.size("contentLength", "content_length"), header(p, upload).size("Content-Length", "content-length")} {
		if size != nil && *size != r.Size {
			return nil, errOtherFile
		}
	}
	f.Attachment.ID = cmp.Or(f.Attachment.ID, r.ID)
	f.UploadURL = secret.New(cmp.Or(p.str("uploadUrl", "upload_url", "uploadURL"), upload.str("url", "uploadUrl")))
	if ready := firstOf([]fields{p, file}, func(f fields) *bool { return f.flag("ready") }); ready != nil {
		f.Ready = *ready
	}
	f.contentType = cmp.Or(
		header(p, upload).str("Content-Type", "content-type"), f.Attachment.ContentType,
		p.str("contentType", "content_type"), upload.str("contentType", "content_type"), typesByName[strings.ToLower(path.Ext(r.Name))])
	if !f.Ready && !mimeType.MatchString(foldedType(f.contentType)) {
		return nil, errUploadType
	}
	return f, nil
}

// typesByName is what the guide allows, in case that a reservation doesn't tell the type.
var typesByName = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".mp4": "video/mp4",
}

// header finds headers that an upload shall carry, as other services give them.
func header(p, upload fields) fields {
	for _, f := range []fields{p.object("headers", "uploadHeaders", "upload_headers"), upload.object("headers")} {
		if f != nil {
			return f
		}
	}
	return nil
}

// fileObject finds the file in an answer: in attachment (guide) or file, or the payload itself.
func fileObject(d answerDoc) (raw json.RawMessage, f fields) {
	for _, name := range []string{"attachment", "file"} {
		raw, _ := d.payload().get(name)
		if f, ok := splitObject(raw); ok {
			return raw, f
		}
	}
	return d.raw, d.payload()
}

// decodeGenerated reads a file's metadata. Guide: durationSeconds; the other names are those
// of an incoming attachment.
func decodeGenerated(raw json.RawMessage, f fields) GeneratedFile {
	a := decodeAttachment(f)
	g := GeneratedFile{ID: a.ID, Name: a.Name, ContentType: a.ContentType, Size: a.Size, URL: secret.New(a.URL), Raw: secret.New(string(raw))}
	if d, ok := first(f, []string{"durationSeconds", "duration_seconds"}, readSeconds); ok {
		g.Duration = &d
	}
	return g
}

// readSeconds reads a number of seconds, or a string that holds one.
func readSeconds(raw json.RawMessage) (time.Duration, bool) {
	text, ok := readString(raw)
	if !ok {
		text = string(raw)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) || n > 1e9 {
		return 0, false
	}
	return time.Duration(math.Round(n*1e6)) * time.Microsecond, true
}

// decodeFinalized reads what the platform found in a file. Guide: "canonical attachment
// metadata"; an empty success still says that it was validated.
func decodeFinalized(a *httpx.Answer, taskID, fileID string) (*GeneratedFile, error) {
	d, err := parseAcknowledgement(a)
	if err != nil {
		return nil, err
	}
	raw, file := fileObject(d)
	g := decodeGenerated(raw, file)
	if g.ID != "" && !strings.EqualFold(g.ID, fileID) || namesOther(d.payload(), taskID, "taskId", "task_id") {
		return nil, errOtherFile
	}
	if ready := firstOf([]fields{d.payload(), file}, func(f fields) *bool { return f.flag("ready") }); ready != nil && !*ready {
		return nil, errNotReady
	}
	g.ID = cmp.Or(g.ID, fileID)
	return &g, nil
}

// Withdrawals. The guide names the routes, the key's idempotency and nothing more. Docs of the
// older tool: toAddress and amount, a decimal string. That the key stands in the body as
// idempotencyKey is how registering does it (guide); a header of that name would make net/http repeat
// the request by itself.
type withdrawalJSON struct {
	IdempotencyKey string      `json:"idempotencyKey"`
	ToAddress      string      `json:"toAddress"`
	Amount         usdc.Amount `json:"amount"`
}

// The words for states are those that other platforms use, next to the guide's "confirmed".
var (
	withdrawalConfirmed = map[string]bool{"confirmed": true, "completed": true, "complete": true, "succeeded": true}
	withdrawalFailed    = map[string]bool{"failed": true, "rejected": true, "reverted": true, "cancelled": true, "canceled": true}
)

// decodeWithdrawal reads a withdrawal that was asked for by its id.
func decodeWithdrawal(body []byte, id string) (*Withdrawal, error) {
	w, err := readWithdrawal(body)
	switch {
	case err != nil:
		return nil, err
	case w.ID != "" && w.ID != id:
		return nil, errOtherTransfer
	}
	w.ID = id
	return w, nil
}

// decodeCreatedWithdrawal reads a new withdrawal. Client: one answer was a txHash alone.
func decodeCreatedWithdrawal(body []byte, to string) (*Withdrawal, error) {
	w, err := readWithdrawal(body)
	switch {
	case err != nil:
		return nil, err
	case w.ID == "" && w.TxHash == "":
		return nil, errNoWithdrawal
	case w.ToAddress != "" && !strings.EqualFold(w.ToAddress, to):
		return nil, errOtherTransfer
	}
	return w, nil
}

func readWithdrawal(body []byte) (*Withdrawal, error) {
	d, err := parseObject(body)
	if errors.Is(err, errNotOK) && d.top.flag("ok") == nil && d.top.text("id") != "" {
		err = nil // the withdrawal has failed, and the asking for it has not
	}
	if err != nil {
		return nil, err
	}
	w := &Withdrawal{Raw: d.raw}
	for _, f := range nested(d.payload(), "withdrawal") {
		w.ID = cmp.Or(w.ID, f.text("id", "withdrawalId", "withdrawal_id"))
		w.Status = cmp.Or(w.Status, WithdrawalStatus(f.str("status", "state")))
		w.ToAddress = cmp.Or(w.ToAddress, f.str("toAddress", "to_address", "to"))
		w.FromAddress = cmp.Or(w.FromAddress, f.str("fromAddress", "from_address", "from"))
		w.TxHash = cmp.Or(w.TxHash, f.str("txHash", "tx_hash", "transactionHash", "transaction_hash"))
		w.Reason = cmp.Or(w.Reason, f.str("reason", "failureReason", "failure_reason", "errorMessage", "error"))
		if w.Amount == nil {
			w.Amount = f.amount("amount", "amountUsdc", "amount_usdc")
		}
		if w.CreatedAt.IsZero() {
			w.CreatedAt = f.moment("createdAt", "created_at")
		}
		if w.UpdatedAt.IsZero() {
			w.UpdatedAt = f.moment("updatedAt", "updated_at")
		}
	}
	w.Reason = cut(httpx.Redact(plain(w.Reason)), maxMessage)
	return w, nil
}
