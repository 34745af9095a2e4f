package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

// clientAddress is the address that hapax saw: the last one in the header.
// r.RemoteAddr is hapax's own.
func clientAddress(r *http.Request) string {
	list := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	return strings.TrimSpace(list[len(list)-1])
}

func pay(w http.ResponseWriter, r *http.Request) {
	var order struct{ Amount int }
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, "not an order", http.StatusBadRequest)
		return
	}
	file, err := os.OpenFile("payments.log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		http.Error(w, "no ledger", http.StatusInternalServerError)
		return
	}
	defer file.Close()
	// Here the money moves.
	fmt.Fprintf(file, "%s\t%s\t%s\t%d\n", r.Header.Get("Idempotency-Key"), clientAddress(r),
		r.Header.Get("X-Forwarded-Proto"), order.Amount)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"amount":%d,"paid":true}`, order.Amount)
}

func main() {
	http.HandleFunc("/payments", pay)
	log.Fatal(http.ListenAndServe("127.0.0.1:9000", nil))
}
