package com.acme.shop;

/** A customer. {@code email} is stored and never read: look for it in v_never_read. */
final class Customer {
  final int id;
  final String name;
  final String email;
  int discountPercent;
  int ordersPlaced;

  Customer(int id, String name, String email, int discountPercent) {
    this.id = id;
    this.name = name;
    this.email = email;
    this.discountPercent = discountPercent;
  }
}
